"""A map of a query in a notebook. The kernel asks the server, so tokens stay with it, and no page is embedded."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _frames
from .errors import MeridianError

if TYPE_CHECKING:
    from .query import Query

SHAPES_MAX = 2_000
"""Events that are drawn one by one; more are drawn as counts on a grid."""
CELL_PX = 6
LABEL_FIELDS = 6
WORLD = [-180.0, -85.0, 180.0, 85.0]


def show(query: Query) -> Any:
    """The widget of `Query.show`."""
    return _widget()(query)


def framed(query: Query) -> list[float]:
    """The box that is shown first: that of the query, else of the collection."""
    box = query.conditions.get("bbox")
    if box is None:
        extent = query.collection.describe().get("extent", {}).get("spatial")
        box = extent["bbox"][0] if extent else WORLD
    west, south, east, north = box
    return WORLD if west >= east else [west, max(south, -85.0), east, min(north, 85.0)]


def limited(query: Query) -> bool:
    """Whether the events are not about what is in view: they are all drawn, up to `SHAPES_MAX`."""
    return query.limit is not None or query.conditions.get("nearest") is not None


def total(query: Query) -> int | None:
    """The events of the query, drawn or not; `None` if the server does not count them. A small view may still have an answer."""
    try:
        count = _matching(query).count()
    except MeridianError:
        return None
    nearest = query.conditions.get("nearest")
    return min(count, query.limit or count, count if nearest is None else int(nearest[2]))


def answer(query: Query, view: list[float], width: int, height: int) -> dict[str, Any]:
    """What is drawn in a view: `features` with labels if they are few, else the counts of a grid."""
    try:
        if limited(query):
            return _features(query.refined(limit=min(query.limit or SHAPES_MAX, SHAPES_MAX)), None)
        within = _within(query, view)
        if within is None:
            return {"kind": "features", "features": [], "count": 0}
        matching = _matching(within)
        count = matching.count()
        if count <= SHAPES_MAX:
            return _features(within.refined(limit=SHAPES_MAX), count)
        grid = matching.density(max(8, width // CELL_PX), max(8, height // CELL_PX))
        return {"kind": "grid", "count": count, "bbox": grid.bbox, "width": grid.width, "height": grid.height, "counts": grid.counts}
    except MeridianError as error:
        return {"kind": "error", "detail": str(error)}


def _matching(query: Query) -> Query:
    """All events that match the conditions: counts are of these alone."""
    return replace(query, conditions={**query.conditions, "nearest": None}, sortby=None, properties=None, limit=None)


def _within(query: Query, view: list[float]) -> Query | None:
    """The events of the query in view; `None` if its own box is elsewhere."""
    west, south, east, north = (max(-180.0, view[0]), max(-90.0, view[1]), min(180.0, view[2]), min(90.0, view[3]))
    own = query.conditions.get("bbox")
    if own is not None:
        if own[0] > own[2]:
            # A box across the antimeridian is two on this map: it is drawn whole.
            return query
        west, south, east, north = max(west, own[0]), max(south, own[1]), min(east, own[2]), min(north, own[3])
    return query.refined(bbox=(west, south, east, north)) if west < east and south < north else None


def _features(query: Query, count: int | None) -> dict[str, Any]:
    features = []
    for feature in query:
        if feature["geometry"] is not None:
            said = [f"{name}: {value}" for name, value in feature["properties"].items() if value not in (None, "")]
            features.append({"geometry": feature["geometry"], "label": "\n".join(said[:LABEL_FIELDS])})
    return {"kind": "features", "features": features, "count": len(features) if count is None else count}


@functools.cache
def _widget() -> Any:
    anywidget, traitlets = _frames.extra("anywidget", "notebook"), _frames.extra("traitlets", "notebook")
    here = Path(__file__).parent

    class Map(anywidget.AnyWidget):  # type: ignore[misc,name-defined]
        """A map that asks for what is in view as it is moved."""

        _esm = here / "map.js"
        land = traitlets.List(json.loads((here / "land.json").read_text())).tag(sync=True)
        title = traitlets.Unicode().tag(sync=True)
        frame = traitlets.List().tag(sync=True)
        total = traitlets.Int(None, allow_none=True).tag(sync=True)
        limited = traitlets.Bool().tag(sync=True)
        view = traitlets.Dict().tag(sync=True)
        shown = traitlets.Dict().tag(sync=True)

        def __init__(self, query: Query) -> None:
            super().__init__(title=query.collection.name, frame=framed(query), total=total(query), limited=limited(query))
            self._query = query
            self.observe(self._moved, "view")

        def _moved(self, change: Any) -> None:
            view = change["new"]
            found = answer(self._query, view["bbox"], int(view["width"]), int(view["height"]))
            self.shown = {**found, "seq": view["seq"]}

    return Map
