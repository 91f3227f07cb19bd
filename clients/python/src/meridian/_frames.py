"""Frames of pandas, GeoPandas and Polars, from Arrow and to it. Each package is imported where it is used."""

from __future__ import annotations

import datetime as dt
import decimal
import importlib
import itertools
import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ._arrow import GEOARROW, spread, without_extensions
from .errors import MissingExtra


def extra(package: str, name: str | None = None) -> Any:
    """An optional package, or an error that names it and the extra with it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        # Not the name of this package: on PyPI it is someone else's.
        source = f'"./clients/python[{name or package}]" in the source of Meridian'
        raise MissingExtra(f"{package} is not installed: pip install {package}, or {source}") from error


def _pandas_types(pandas: Any) -> dict[str, Any]:
    """Integers with nulls stay integers, which NumPy's types cannot hold."""
    return {"types_mapper": {pa.int64(): pandas.Int64Dtype()}.get}


def to_pandas(table: pa.Table, points: str | None) -> Any:
    """A DataFrame; the point column becomes `lon` and `lat`, other shapes stay WKB."""
    pandas = extra("pandas")
    return spread(without_extensions(table), points).to_pandas(**_pandas_types(pandas))


def to_polars(table: pa.Table, points: str | None) -> Any:
    """A polars DataFrame; geometry as in `to_pandas`."""
    polars = extra("polars")
    return polars.from_arrow(spread(without_extensions(table), points))


def to_geopandas(table: pa.Table, geometry: str | None) -> Any:
    """A GeoDataFrame in OGC:CRS84."""
    if geometry is None:
        raise ValueError("this collection has no geometry: use to_pandas()")
    geopandas, pandas = extra("geopandas"), extra("pandas")
    bare = without_extensions(table)
    at = bare.column_names.index(geometry)
    shapes = geopandas.GeoSeries.from_wkb(bare.column(at).to_pandas(), crs="OGC:CRS84")
    frame = bare.remove_column(at).to_pandas(**_pandas_types(pandas))
    frame.insert(at, geometry, shapes)
    return geopandas.GeoDataFrame(frame, geometry=geometry)


def _package(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def to_tables(data: Any, rows: int) -> Iterator[pa.Table] | None:
    """A table, frame or stream of record batches as tables of at most `rows` rows; `None` if it is none of these."""
    if isinstance(data, pa.RecordBatchReader):
        return _regrouped(data, rows)
    table = to_table(data)
    if table is None:
        return None
    return (table.slice(at, rows) for at in range(0, table.num_rows, rows))


def to_table(data: Any) -> pa.Table | None:
    """A table or frame as an Arrow table; `None` if it is neither."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if _package(data) == "geopandas" and hasattr(data, "geometry"):
        return _of_geopandas(data)
    if _package(data) == "pandas" and hasattr(data, "columns"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    return None


def _of_geopandas(frame: Any) -> pa.Table:
    if frame.crs is not None and not frame.crs.equals("EPSG:4326", ignore_axis_order=True):
        # GeoPandas keeps x (the longitude) first, whatever the order of the system's axes.
        frame = frame.to_crs("OGC:CRS84")
    name = frame.geometry.name
    # An empty point has no place, as none has; its WKB would be refused.
    shapes = frame.geometry.where(~frame.geometry.is_empty, None).to_wkb()
    table = pa.Table.from_pandas(extra("pandas").DataFrame(frame).assign(**{name: shapes}), preserve_index=False)
    at = table.column_names.index(name)
    return table.set_column(at, pa.field(name, pa.binary(), metadata=GEOARROW), table.column(at).cast(pa.binary()))


def _regrouped(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Tables of `rows` rows each, the last one shorter, so that the same stream is always cut at the same places."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        while count >= rows:
            table = pa.Table.from_batches(held)
            yield table.slice(0, rows)
            held, count = table.slice(rows).to_batches(), count - rows
    if count:
        yield pa.Table.from_batches(held)


def to_features(data: Any, rows: int) -> Iterator[list[Mapping[str, Any]]]:
    """GeoJSON features, a feature collection, or flat mappings, in lists of at most `rows`."""
    if isinstance(data, Mapping):
        data = data["features"] if data.get("type") == "FeatureCollection" else [data]
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise TypeError(
            f"cannot append a {type(data).__name__}: expected a table of Arrow, a frame of pandas, GeoPandas or Polars, or GeoJSON features"
        )
    features = iter(data)
    while part := list(itertools.islice(features, rows)):
        yield part


def lines(features: list[Mapping[str, Any]]) -> bytes:
    """Features as NDJSON."""
    return "".join(_line(feature) + "\n" for feature in features).encode()


def _line(feature: Any) -> str:
    try:
        # Most features are JSON as they are.
        return json.dumps(feature, allow_nan=False)
    except (TypeError, ValueError):
        return json.dumps(_json(feature, "an event"))


def _json(value: Any, field: str) -> Any:
    """A value of Python, NumPy or pandas in JSON. `field` is what an error names."""
    if isinstance(value, Mapping):
        return {name: _json(member, str(name)) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(member, field) for member in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    # By their names, as neither package need be there. NaT is a `datetime`, and NA has no truth.
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is not None and getattr(value, "ndim", None):
        # `tolist`, as `item` below, gives integers for instants and durations in nanoseconds.
        return _json(list(value) if kind in "Mm" else value.tolist(), field)
    if kind in _SCALARS:
        return _json(_SCALARS[kind](value), field)
    if kind == "M":
        return None if value != value else str(value)
    if isinstance(value, decimal.Decimal) and value.is_snan():
        # It cannot even be compared.
        raise ValueError(f"{field}: {value} is no number that can be kept")
    if isinstance(value, (float, decimal.Decimal)) and value != value:
        return None
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (dt.date, decimal.Decimal, uuid.UUID)):
        return str(value)
    if hasattr(value, "__geo_interface__"):
        # An empty shape has no place, as none has.
        return None if getattr(value, "is_empty", False) else _json(value.__geo_interface__, field)
    if isinstance(value, float):
        raise ValueError(f"{field}: {value} is no number that can be kept")
    raise TypeError(f"{field}: a {type(value).__name__} cannot be appended")


_SCALARS: dict[str | None, Callable[[Any], Any]] = {"b": bool, "i": int, "u": int, "f": float}
"""Scalars of NumPy by the kind of their type. Their own `item` gives integers for instants in nanoseconds."""
