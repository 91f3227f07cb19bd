"""A collection of events with one schema."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from . import _arrow, _frames
from ._conditions import Conditions, parameters
from ._http import Http, Parameters
from ._progress import Progress
from .errors import NotFound, Problem
from .live import Stream
from .query import Density, Query

if TYPE_CHECKING:
    from typing_extensions import Unpack

ROWS = 50_000
"""Events of one write."""
BYTES = 16 << 20
"""Bytes of one write, about: a server takes 64 MiB by default."""
_KINDS = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}


@dataclass
class Written:
    """The outcome of `append`."""

    written: int = 0
    """Events stored."""
    replaced: int = 0
    """Events that they replaced."""
    duplicates: int = 0
    """Events of writes that were stored before under the same key."""
    position: str | None = None
    """Position of the last write: `stream(after=…)` starts behind it."""

    def _add(self, receipt: Mapping[str, Any]) -> None:
        self.written += receipt.get("written", 0)
        self.replaced += receipt.get("replaced", 0)
        self.duplicates += receipt.get("duplicates", 0)
        self.position = receipt.get("position", self.position)


class Collection:
    """A collection by its name; made by `db["name"]`, without a request.

    >>> quakes = db["earthquakes"]
    >>> len(quakes)
    156288
    >>> quakes.schema["properties"]["mag"]
    {'type': 'number'}
    """

    def __init__(self, http: Http, name: str) -> None:
        if not name or "/" in name:
            raise ValueError(f"{name!r} is no name of a collection")
        self.name = name
        self._http = http
        self._schema: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<meridian {self.name!r} at {self._http.url}>"

    def __len__(self) -> int:
        return self.query().count()

    def __bool__(self) -> bool:
        # A collection without events is one, and `if collection:` should not ask the server.
        return True

    # What it is

    def describe(self) -> dict[str, Any]:
        """Extent, number of events, bytes, durability, retention and links, as the server has them now."""
        found: dict[str, Any] = self._http.json("GET", self._path(), {"f": "json"})
        return found

    def exists(self) -> bool:
        """Whether there is such a collection for this token."""
        try:
            self.describe()
        except NotFound:
            return False
        return True

    @property
    def schema(self) -> dict[str, Any]:
        """Its fields, as JSON Schema. Asked for once; `change` asks again."""
        if self._schema is None:
            self._schema = self._get("schema", {"f": "json"})
        return self._schema

    @property
    def geometry(self) -> str | None:
        """Name of the geometry column, if it has one."""
        fields: dict[str, dict[str, Any]] = self.schema["properties"]
        return next((n for n, f in fields.items() if f.get("x-ogc-role") == "primary-geometry"), None)

    @property
    def points(self) -> str | None:
        """Name of the geometry column, if every geometry is a point."""
        name = self.geometry
        return name if name and self.schema["properties"][name].get("format") == "geometry-point" else None

    def _kind(self, name: str) -> pa.DataType:
        """The type of the values of a field in a table of groups or objects."""
        if name not in self.schema["properties"]:
            # It was added since.
            self._schema = None
        described = self.schema["properties"].get(name, {})
        return _KINDS.get(described.get("type"), pa.string())

    # Questions

    def query(
        self,
        *,
        sortby: str | Sequence[str] | None = None,
        properties: Sequence[str] | None = None,
        limit: int | None = None,
        **conditions: Unpack[Conditions],
    ) -> Query:
        """Events that match all conditions; without one, all events.

        `bbox` is west, south, east, north; `datetime` an instant, a date or `(start, end)`; `filter` CQL2;
        `near` longitude, latitude and metres; `nearest` longitude, latitude and k. `sortby="-mag"` needs a `limit` of at
        most 100,000.

        >>> near_tokyo = db["earthquakes"].query(near=(139.69, 35.69, 200_000), limit=2)
        >>> [feature["id"] for feature in near_tokyo]
        ['us7000e311', 'us7000ebeb']
        """
        return Query(self, conditions, sortby, properties, limit)

    def aggregate(
        self,
        *functions: str,
        window: str | None = None,
        by: str | Sequence[str] | None = None,
        zone: str | None = None,
        empty: bool = False,
        **conditions: Unpack[Conditions],
    ) -> pa.Table:
        """`query(**conditions).aggregate(…)`.

        >>> db["ships"].aggregate("count", "avg(sog_kn)", by="class").to_pylist()
        [{'class': 'A', 'count': 76194, 'avg(sog_kn)': 2.066...}, {'class': 'B', 'count': 23805, 'avg(sog_kn)': 0.696...}]
        """
        return self.query(**conditions).aggregate(*functions, window=window, by=by, zone=zone, empty=empty)

    def density(self, *, width: int = 64, height: int = 32, **conditions: Unpack[Conditions]) -> Density:
        """`query(**conditions).density(…)`."""
        return self.query(**conditions).density(width, height)

    def tracks(self, **conditions: Unpack[Conditions]) -> pa.Table:
        """`query(**conditions).tracks()`."""
        return self.query(**conditions).tracks()

    def get(self, id: str) -> dict[str, Any] | None:
        """One event as a GeoJSON feature, `None` if there is none.

        >>> db["earthquakes"].get("us7000e311")["properties"]["mag"]
        4.4
        """
        try:
            found: dict[str, Any] = self._get("items", {"f": "json"}, id)
        except NotFound:
            self.describe()
            return None
        return found

    def stream(
        self,
        *,
        after: str | None = None,
        when: Sequence[str] | None = None,
        properties: Sequence[str] | None = None,
        patience: float = 60.0,
        **conditions: Unpack[Conditions],
    ) -> Stream:
        """Events as they are written, in that order: an iterator, and an async iterator.

        It is open when this returns, and reconnects where it was cut, without a loss or a repetition, for as long as
        `patience` seconds without success. `after` is a position (`"0"` for the oldest event); `when` are transitions of
        moving objects (`enter`, `inside`, `exit`).

        >>> with db["earthquakes"].stream(after="0", filter="mag > 7.5") as stream:
        ...     event = next(stream)
        >>> event["properties"]["mag"], event["position"]
        (7.9, '00000000...')
        """
        asked = parameters(conditions)
        if when is not None:
            asked["when"] = ",".join(when)
        if properties is not None:
            asked["properties"] = ",".join(properties)
        return Stream(self._http, self._path("stream"), asked, after, patience)

    def show(self, **conditions: Unpack[Conditions]) -> Any:
        """`query(**conditions).show()`."""
        return self.query(**conditions).show()

    # Changes

    def append(self, data: Any, *, key: str | None = None, lenient: bool = False, progress: bool | None = None) -> Written:
        """Writes events: a table of Arrow, a frame of pandas, GeoPandas or Polars, GeoJSON features or flat mappings.

        Columns are matched to the schema by name; points may be columns such as `lon` and `lat`. A GeoDataFrame in another
        reference system is reprojected. Events are written in parts of at most 50,000, each stored completely or not at
        all. A part that got no answer, or was refused for load, is sent again under the same `Idempotency-Key`, so
        nothing is stored twice. With a `key` of your own, the same `append` may be repeated later: what was stored
        counts as `duplicates`. Values may be those of NumPy, pandas and shapely: NaN, `NA` and `NaT` are null, and a type
        that JSON has no form for is a `TypeError`. `lenient` leaves out heights, and ids that the collection cannot keep.

        >>> import pyarrow as pa
        >>> beacons = db.create("beacons", {"properties": {"seen": {"type": "string", "format": "date-time",
        ...     "x-ogc-role": "primary-instant"}, "place": {"format": "geometry-point", "x-ogc-role": "primary-geometry"}}})
        >>> beacons.append(pa.table({"seen": ["2026-01-31T12:00:00Z"], "lon": [4.5], "lat": [52.0]})).written
        1
        >>> db.drop("beacons")
        True
        """
        if key == "":
            raise ValueError("key: expected a text that is not empty")
        base = uuid.uuid4().hex if key is None else key
        outcome = Written()
        line = Progress(f"append to {self.name}", len(data) if hasattr(data, "__len__") else None, progress)
        tables = _frames.to_tables(data, ROWS)
        if tables is not None:
            for n, table in enumerate(tables):
                if table.num_rows:
                    self._write(_TABLES, table, f"{base}-{n}", lenient, outcome, line.done)
                    line.add(table.num_rows)
        else:
            for n, features in enumerate(_frames.to_features(data, ROWS)):
                self._write(_FEATURES, features, f"{base}-{n}", lenient, outcome, line.done)
                line.add(len(features))
        line.finish()
        return outcome

    def _write(self, form: _Form, part: Any, key: str, lenient: bool, outcome: Written, before: int) -> None:
        """Writes a part, in halves if it is too large; halves of one part always have the same keys.

        `before` events precede it: the caller does not know of parts, so mistakes are counted over all events.
        """
        body = form.encode(part)
        if len(body) <= BYTES or form.rows(part) == 1:
            headers = {"Content-Type": form.media, "Idempotency-Key": key}
            if lenient:
                headers["Prefer"] = "handling=lenient"
            try:
                outcome._add(
                    self._http.json("POST", self._path("items"), body=body, headers=headers, repeatable=True)
                )
                return
            except Problem as problem:
                if problem.status != 413 or form.rows(part) == 1:
                    raise problem._behind(before) from None
        for n, half in enumerate(form.halves(part)):
            self._write(form, half, f"{key}.{n}", lenient, outcome, before)
            before += form.rows(half)

    def delete(self, **conditions: Unpack[Conditions]) -> int:
        """Deletes the events that match, and returns their number; `filter="TRUE"` for all.

        At least one condition is needed. More than 65,536 events are deleted in steps; an error in between has the
        number that are deleted in `details`.
        """
        found = self._http.json("DELETE", self._path("items"), parameters(conditions))
        return int(found["deleted"])

    def change(self, settings: Mapping[str, Any], *, confirm: int | None = None) -> None:
        """Changes settings: `retention`, `retention_bytes`, and `properties` with new optional fields.

        A retention that would remove events is a `Conflict`, with their number in `details["removes"]`, unless `confirm` is
        at least that number.
        """
        asked = {} if confirm is None else {"confirm": str(confirm)}
        self._http.json("PATCH", self._path(), asked, document=dict(settings))
        self._schema = None

    # Requests

    def _path(self, *rest: str) -> list[str]:
        return ["collections", self.name, *rest]

    def _get(self, what: str, asked: Parameters, *rest: str) -> Any:
        seconds = float(asked["timeout"]) / 1000 if "timeout" in asked else None
        silence = None if seconds is None else max(self._http.timeout, seconds + 5)
        return self._http.json("GET", self._path(what, *rest), asked, timeout=silence)


@dataclass(frozen=True)
class _Form:
    """One way in which events are sent."""

    media: str
    encode: Callable[[Any], bytes]
    rows: Callable[[Any], int]
    halves: Callable[[Any], list[Any]]


def _halves(features: list[Any]) -> list[Any]:
    middle = len(features) // 2
    return [features[:middle], features[middle:]]


def _table_halves(table: pa.Table) -> list[Any]:
    middle = table.num_rows // 2
    return [table.slice(0, middle), table.slice(middle)]


_TABLES = _Form(_arrow.STREAM, _arrow.body, lambda table: int(table.num_rows), _table_halves)
_FEATURES = _Form("application/x-ndjson", _frames.lines, len, _halves)
