"""A schema for what a table holds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from . import _frames
from ._arrow import is_text

PAIRS = (("lon", "lat"), ("lng", "lat"), ("longitude", "latitude"), ("x", "y"))
SHAPES = ("geometry", "geom")
INSTANTS = ("time", "timestamp", "datetime", "date")
_KINDS = {"Point": "point", "LineString": "linestring", "Polygon": "polygon"}


def schema_of(
    data: Any, *, time: str | None = None, id: str | None = None, object: str | None = None, geometry: str | None = None
) -> dict[str, Any]:
    """The JSON Schema of a collection that can keep this table or frame.

    `time` is the column of the instant, `id` one of distinct ids, `object` one that names a moving object, and
    `geometry` one of shapes in WKB. Without these, customary names count (`time`, `id`, `geometry`, `lon` and `lat`).

    >>> import pyarrow as pa
    >>> schema_of(pa.table({"lon": [1.5], "lat": [2.5], "depth": [10]}))["properties"]
    {'geometry': {'format': 'geometry-point', 'x-ogc-role': 'primary-geometry'}, 'depth': {'type': 'integer'}}
    """
    table = _frames.to_table(data)
    if table is None:
        raise TypeError(f"a {type(data).__name__} has no columns: expected a table of Arrow, or a frame")
    names = table.column_names
    for name in (time, id, object, geometry):
        if name is not None and name not in names:
            raise ValueError(f"there is no column {name!r}: expected one of {', '.join(names)}")
    active = getattr(getattr(data, "geometry", None), "name", None)
    geometry = geometry or active or _first(SHAPES, [n for n in names if _is_shape(table.schema.field(n))])
    pair = next((p for p in PAIRS if geometry is None and set(p) <= set(names)), ())
    id = id or ("id" if "id" in names else None)
    time = time or _first(INSTANTS, [n for n in names if pa.types.is_timestamp(table.schema.field(n).type)])
    properties: dict[str, Any] = {}
    if pair:
        properties["geometry"] = {"format": "geometry-point", "x-ogc-role": "primary-geometry"}
    for field in table.schema:
        if field.name in pair:
            continue
        if field.name == geometry:
            kind = _shapes(data) if active else "geometry-any"
            properties[field.name] = {"format": kind, "x-ogc-role": "primary-geometry"}
            continue
        properties[field.name] = described = _type(field)
        if field.name == id:
            properties[field.name] = {"type": "string", "x-ogc-role": "id"}
        elif field.name == time:
            described["x-ogc-role"] = "primary-instant"
            if described["type"] == "string":
                # Texts: the server reads them as RFC 3339.
                described.setdefault("format", "date-time")
        elif field.name == object:
            described["x-meridian-object"] = True
    return {"type": "object", "properties": properties, "required": [n for n in (id, time) if n]}


def _first(wanted: tuple[str, ...], names: list[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


def _is_shape(field: pa.Field) -> bool:
    kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _shapes(frame: Any) -> str:
    kinds = {kind.removeprefix("Multi") for kind in frame.geometry.geom_type.dropna().unique()}
    single = not any(kind.startswith("Multi") for kind in frame.geometry.geom_type.dropna().unique())
    if len(kinds) != 1 or (kind := _KINDS.get(kinds.pop())) is None:
        return "geometry-any"
    return f"geometry-{kind}" if single else f"geometry-{kind}-or-multi{kind}"


def _type(field: pa.Field) -> dict[str, Any]:
    kind, types = field.type, pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_integer(kind):
        return {"type": "integer"}
    if types.is_floating(kind) or types.is_decimal128(kind):
        return {"type": "number"}
    if types.is_boolean(kind):
        return {"type": "boolean"}
    if types.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if types.is_date(kind):
        return {"type": "string", "format": "date"}
    if is_text(kind) or types.is_null(kind):
        return {"type": "string"}
    if (types.is_list(kind) or types.is_large_list(kind)) and is_text(kind.value_type):
        return {"type": "array", "items": {"type": "string"}}
    raise ValueError(f"column {field.name!r}: {field.type} cannot be kept")
