"""A question to a collection, asked when an answer is wanted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import urllib3

from . import _frames, _groups
from ._arrow import Batches
from ._conditions import parameters
from ._export import export
from ._progress import Progress
from .errors import BrokenOff

if TYPE_CHECKING:
    from .collection import Collection

PAGE_MAX = 10_000


@dataclass(frozen=True)
class Density:
    """Counts of events on a grid."""

    bbox: tuple[float, float, float, float]
    """West, south, east, north of the grid."""
    width: int
    height: int
    counts: list[int]
    """Row by row from the north-west corner."""

    def to_numpy(self) -> Any:
        """Counts as an array of `height` rows, the northern one first."""
        return _frames.extra("numpy", "pandas").array(self.counts, dtype="int64").reshape(self.height, self.width)


@dataclass(frozen=True, repr=False)
class Query:
    """Events of a collection that match; nothing is asked before an answer is wanted.

    >>> japan = db["earthquakes"].query(bbox=(138, 34, 142, 37), filter="mag >= 5")
    >>> japan.count()
    9
    >>> japan.to_arrow().column("mag").to_pylist() == [f["properties"]["mag"] for f in japan]
    True
    """

    collection: Collection
    conditions: Mapping[str, Any]
    sortby: str | Sequence[str] | None = None
    properties: Sequence[str] | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        # Mistakes are best reported where they are made.
        parameters(self.conditions)
        if self.limit is not None and self.limit < 1:
            raise ValueError("limit: expected 1 or more")

    def __repr__(self) -> str:
        given = {**self.conditions, "sortby": self.sortby, "properties": self.properties, "limit": self.limit}
        said = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"{self.collection!r}.query({said})"

    # Events

    def batches(self) -> Batches:
        """Record batches as the server finds them, in constant memory.

        >>> with db["ships"].query().batches() as batches:
        ...     sum(batch.num_rows for batch in batches)
        99999
        """
        return Batches(self._open("arrow"))

    def to_arrow(self, progress: bool | None = None) -> pa.Table:
        """All events as a table: the id, the geometry as WKB (`geoarrow.wkb`), then the fields.

        `progress` draws a line while it takes long; by default in notebooks only.
        """
        with self.batches() as batches:
            line = Progress(f"read {self.collection.name}", self.limit, progress)
            held = []
            for batch in batches:
                held.append(batch)
                line.add(batch.num_rows)
            line.finish()
            return pa.Table.from_batches(held, batches.schema)

    def to_pandas(self, progress: bool | None = None) -> Any:
        """All events as a pandas `DataFrame`. Points become the columns `lon` and `lat`; other shapes stay WKB.

        Points stay WKB too if a field is named `lon` or `lat`.

        >>> db["earthquakes"].query(sortby="-mag", limit=3).to_pandas()[["mag", "place"]]
           mag                                  place
        0  7.9  39km WNW of Panguna, Papua New Guinea
        1  7.3                Southern Qinghai, China
        2  7.2              south of the Fiji Islands
        """
        return _frames.to_pandas(self.to_arrow(progress), self.collection.points)

    def to_geopandas(self, progress: bool | None = None) -> Any:
        """All events as a `GeoDataFrame` in OGC:CRS84.

        >>> frame = db["storms"].query(filter="name = 'Katrina'").to_geopandas()
        >>> frame.geom_type.unique().tolist()
        ['LineString']
        """
        return _frames.to_geopandas(self.to_arrow(progress), self.collection.geometry)

    def to_polars(self, progress: bool | None = None) -> Any:
        """All events as a polars `DataFrame`; geometry as in `to_pandas`."""
        return _frames.to_polars(self.to_arrow(progress), self.collection.points)

    def export(self, file: str | os.PathLike[str]) -> int:
        """Writes all events to a file in the form of its extension, and returns its bytes. A file that is there is replaced.

        `.parquet` or `.geoparquet` is GeoParquet, `.arrow` a file and `.arrows` a stream of Arrow. The others are `.csv`,
        `.geojson` or `.json`, `.ndjson`, `.geojsonl` or `.jsonl` (a feature a line), `.geojsons` (RFC 8142), `.fgb` (FlatGeobuf
        without an index) and `.gpkg` (GeoPackage). The server makes a GeoPackage before it sends it: one that takes longer than
        two minutes needs a `timeout` of the query, and one above the server's limit is `Invalid`. The file is written completely
        or not at all. `.pmtiles` is a `ValueError`: `meridian export` writes it.

        >>> import os, tempfile
        >>> file = os.path.join(tempfile.mkdtemp(), "storms.csv")
        >>> db["storms"].query(filter="name = 'Katrina'").export(file) == os.path.getsize(file)
        True
        """
        return export(self, file)

    def pages(self, size: int = PAGE_MAX) -> Iterator[pa.Table]:
        """Tables of at most `size` events, all of one snapshot: for work between pages that takes minutes.

        A page has to be asked for within five minutes of the one before; later it is `Gone`.
        """
        asked, left = self._parameters("arrow"), self.limit
        while left is None or left > 0:
            asked["limit"] = str(min(size, PAGE_MAX, left or size))
            answer = self.collection._http.open("GET", self.collection._path("items"), asked)
            following = answer.headers.get("Link")
            with Batches(answer) as batches:
                table = pa.Table.from_batches(list(batches), batches.schema)
            if table.num_rows or "token" not in asked:
                yield table
            left = None if left is None else left - table.num_rows
            token = _token(following)
            if token is None:
                return
            asked["token"] = token

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Events as GeoJSON features, as the server finds them."""
        answer = self._open("ndjson")
        try:
            line = b""
            for piece in answer.stream(1 << 16):
                *whole, line = (line + piece).split(b"\n")
                for text in whole:
                    if text:
                        yield json.loads(text)
            if line:
                yield json.loads(line)
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise BrokenOff(f"the answer broke off: {error}") from error
        finally:
            if answer.length_remaining is None or answer.length_remaining:
                answer.close()
            answer.release_conn()

    def first(self) -> dict[str, Any] | None:
        """The first event as a GeoJSON feature, `None` if none matches."""
        one = Query(self.collection, self.conditions, self.sortby, self.properties, 1)
        return next(iter(list(one)), None)

    def explain(self) -> dict[str, Any]:
        """What the query visited and pruned of the index."""
        asked = {**self._parameters("json"), "explain": "true"}
        found: dict[str, Any] = self.collection._get("items", asked)
        return found

    # Numbers

    def count(self) -> int:
        """The number of events that match all conditions but `nearest`, which is refused here, as are an order and a `limit`."""
        self._whole("count")
        return int(self.aggregate("count").column("count")[0].as_py())

    def aggregate(
        self,
        *functions: str,
        window: str | None = None,
        by: str | Sequence[str] | None = None,
        zone: str | None = None,
        empty: bool = False,
    ) -> pa.Table:
        """A row for each group: `window_start`, `window_end`, the fields of `by`, then each function under its text as given.

        Functions are `count`, of a field `count(f)`, `sum(f)`, `avg(f)`, `min(f)`, `max(f)`, `median(f)`, `percentile(f,95)`,
        `distinct(f)`, and `top(f,5)`, a list of the most frequent values with their counts. The last four have their error
        in the column `error(FUNCTION)` behind them, 0 where they are exact (docs/aggregate.md). `window` is an ISO 8601
        duration, `by` a field or a list of fields, `zone` the time zone of the windows, and `empty` lists windows without
        events too.

        >>> table = db["earthquakes"].query(filter="mag >= 6").aggregate("count", "max(mag)", window="P1Y")
        >>> table.column_names
        ['window_start', 'window_end', 'count', 'max(mag)']
        >>> table.column("count").to_pylist()
        [4, 3, 7, 24, 7, 28, 24, 12, 12]
        >>> db["earthquakes"].aggregate("median(mag)", "distinct(place)").to_pylist()
        [{'median(mag)': 1.36, 'error(median(mag))': 0.0, 'distinct(place)': 54123, 'error(distinct(place))': 0.024375}]
        >>> db["earthquakes"].aggregate("top(type,1)").column("top(type,1)").to_pylist()
        [[{'value': 'earthquake', 'count': 153372}]]
        >>> db["earthquakes"].aggregate("max(mag)", by=["net", "magType"], filter="mag > 7.5").to_pylist()
        [{'net': 'us', 'magType': 'mww', 'max(mag)': 7.9}]
        """
        self._whole("aggregate")
        listed = _groups.split(functions or ("count",))
        asked = {**parameters(self.conditions), "f": "json", "function": ",".join(listed)}
        fields = by if by is None or isinstance(by, str) else ",".join(by)
        asked |= {name: value for name, value in (("window", window), ("by", fields), ("zone", zone)) if value}
        if empty:
            asked["empty"] = "true"
        groups = self.collection._get("aggregate", asked)["groups"]
        named = self._fields(fields) if fields else []
        return _groups.to_table(groups, listed, bool(window), named, self.collection._kind)

    def density(self, width: int = 64, height: int = 32) -> Density:
        """Counts on a grid over `bbox`, by default the world.

        >>> grid = db["earthquakes"].query(bbox=(-130, 30, -110, 50)).density(width=4, height=4)
        >>> sum(grid.counts) == db["earthquakes"].query(bbox=(-130, 30, -110, 50)).count()
        True
        """
        self._whole("density")
        asked = {**parameters(self.conditions), "width": str(width), "height": str(height)}
        found = self.collection._get("density", asked)
        west, south, east, north = found["bbox"]
        return Density((west, south, east, north), found["width"], found["height"], found["counts"])

    def tracks(self) -> pa.Table:
        """Which objects passed: `object`, `count`, and the `first` and `last` instant of each, ordered by object.

        >>> new_york = db["ships"].query(bbox=(-74.1, 40.6, -74, 40.7))
        >>> new_york.tracks().num_rows
        65
        """
        self._whole("tracks")
        asked, left = {**parameters(self.conditions), "limit": str(PAGE_MAX)}, self.limit
        found: list[dict[str, Any]] = []
        while True:
            if left is not None:
                asked["limit"] = str(min(PAGE_MAX, left - len(found)))
            page = self.collection._get("tracks", asked)
            found += page["tracks"]
            following = [link["href"] for link in page["links"] if link["rel"] == "next"]
            if not following or (left is not None and len(found) >= left):
                break
            asked["after"] = parse_qs(urlsplit(following[0]).query)["after"][0]
        instants = pa.timestamp("us", "UTC")
        fields: dict[str, dict[str, Any]] = self.collection.schema["properties"]
        named = next((name for name, field in fields.items() if field.get("x-meridian-object")), "object")
        columns = {
            "object": pa.array([track["object"] for track in found], type=self.collection._kind(named)),
            "count": pa.array([track["count"] for track in found], type=pa.int64()),
        }
        for name in ("first", "last"):
            columns[name] = pa.array([track[name] for track in found], type=pa.string()).cast(instants)
        return pa.table(columns)

    def track(self, track: str | int, simplify: float | None = None) -> dict[str, Any]:
        """The events of one object as a GeoJSON feature: a line in time order, with their instants as `times`.

        `simplify` omits events within that many metres of the line.
        """
        self._whole("track")
        asked = {**parameters(self.conditions), "f": "json", "track": str(track)}
        if simplify is not None:
            asked["simplify"] = repr(float(simplify))
        found: dict[str, Any] = self.collection._get("items", asked)
        return found

    def show(self) -> Any:
        """A map in a notebook, which asks the server again as it is moved. Needs the extra `notebook`."""
        from ._map import show

        return show(self)

    def refined(self, *, limit: int | None = None, **conditions: Any) -> Query:
        """The same query with these conditions in place of its own of the same names, and this limit if there is one."""
        return replace(self, conditions={**self.conditions, **conditions}, limit=limit or self.limit)

    # Requests

    def _parameters(self, form: str) -> dict[str, str]:
        asked = {**parameters(self.conditions), "f": form}
        if self.sortby is not None:
            asked["sortby"] = self.sortby if isinstance(self.sortby, str) else ",".join(self.sortby)
        if self.properties is not None:
            asked["properties"] = ",".join(self.properties)
        if self.limit is not None:
            asked["limit"] = str(self.limit)
        return asked

    def _open(self, form: str) -> Any:
        http, seconds = self.collection._http, self.conditions.get("timeout")
        silence = None if seconds is None else max(http.timeout, seconds + 5)
        return http.open("GET", self.collection._path("items"), self._parameters(form), timeout=silence)

    def _fields(self, names: str) -> list[str]:
        """The fields of a list with commas between, as the server reads it: a name with commas stands alone."""
        alone = "," not in names or names in self.collection.schema["properties"]
        return [names] if alone else names.split(",")

    def _whole(self, what: str) -> None:
        """Refuses a question whose answer would not be about what it says."""
        if self.sortby is not None or self.properties is not None or (self.limit is not None and what != "tracks"):
            raise ValueError(f"{what} is of all events that match: sortby, properties and limit are for events")
        if self.conditions.get("nearest") is not None:
            raise ValueError(f"{what} is of all events that match: nearest is for events, near for those within a distance")


def _token(links: str | None) -> str | None:
    """The token of the next page. The page is asked for at the address of this client, whatever the link names.

    >>> _token('<http://elsewhere/items?token=A>; rel="self", <http://elsewhere/items?f=arrow&token=B>; rel="next"')
    'B'
    """
    for link in links.split(", <") if links else ():
        target, _, rest = link.partition(">")
        if 'rel="next"' in rest:
            return parse_qs(urlsplit(target.lstrip("<")).query).get("token", [None])[0]
    return None
