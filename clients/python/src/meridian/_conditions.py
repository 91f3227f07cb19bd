"""Conditions of a question, as Python has them, in the parameters of the HTTP API."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Union

Instant = Union[str, dt.datetime, dt.date]
When = Union[Instant, tuple[Union[Instant, None], Union[Instant, None]]]
Filter = Union[str, Mapping[str, Any]]


class Conditions(TypedDict, total=False):
    """Which events: every question takes these by name, but for `nearest`."""

    bbox: Sequence[float]
    """West, south, east, north in degrees; west > east crosses the antimeridian."""
    datetime: When
    """An instant, a date (the whole day in UTC), or `(start, end)` with `None` for an open end. Text is passed on."""
    filter: Filter
    """CQL2: text, or JSON as a `dict`."""
    near: tuple[float, float, float]
    """Longitude, latitude and max distance in metres (great circle); nearest first."""
    nearest: tuple[float, float, int]
    """Longitude, latitude and k: the k nearest events. For the events of a query, not for counts, tracks or streams."""
    history: bool
    """In a collection of mode `latest`: all events, not only the newest of each object."""
    timeout: float
    """Deadline of the server in seconds."""


NAMES = frozenset(Conditions.__annotations__)


def instant(value: Instant) -> str:
    """An instant as RFC 3339 text, a day as `2026-01-31`.

    >>> import datetime as dt
    >>> instant(dt.datetime(2026, 1, 31, 12, tzinfo=dt.timezone.utc))
    '2026-01-31T12:00:00+00:00'
    >>> instant(dt.datetime(2026, 1, 31))
    Traceback (most recent call last):
    ValueError: 2026-01-31 00:00:00 has no time zone: give it one, such as tzinfo=datetime.timezone.utc
    """
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone: give it one, such as tzinfo=datetime.timezone.utc")
        return value.isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    return value


def _numbers(name: str, values: Sequence[float], count: int, expected: str) -> list[float]:
    numbers = [float(v) for v in values]
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{name}: expected {expected}")
    return numbers


def _text(number: float) -> str:
    return repr(int(number)) if number.is_integer() else repr(number)


def parameters(conditions: Mapping[str, Any]) -> dict[str, str]:
    """The parameters of these conditions.

    >>> parameters({"bbox": (138, 34, 142, 37.5), "datetime": ("2026-03-01", None)})
    {'bbox': '138,34,142,37.5', 'datetime': '2026-03-01/..'}
    """
    if unknown := set(conditions) - NAMES:
        raise TypeError(f"unknown condition {', '.join(sorted(unknown))}: expected some of {', '.join(sorted(NAMES))}")
    found: dict[str, str] = {}
    given = {name: value for name, value in conditions.items() if value is not None}
    if "bbox" in given:
        box = _numbers("bbox", given["bbox"], 4, "four numbers: west, south, east, north")
        found["bbox"] = ",".join(map(_text, box))
    if "datetime" in given:
        when = given["datetime"]
        if isinstance(when, tuple):
            if len(when) != 2:
                raise ValueError("datetime: expected (start, end), with None for an open end")
            found["datetime"] = "/".join(".." if end is None else instant(end) for end in when)
        else:
            found["datetime"] = instant(when)
    if "filter" in given:
        condition = given["filter"]
        if isinstance(condition, str):
            found["filter"] = condition
        else:
            found |= {"filter": json.dumps(condition, allow_nan=False), "filter-lang": "cql2-json"}
    if "near" in given and "nearest" in given:
        raise ValueError("near and nearest exclude each other")
    if "near" in given:
        lon, lat, radius = _numbers("near", given["near"], 3, "three numbers: longitude, latitude, metres")
        found |= {"near": f"{_text(lon)},{_text(lat)}", "radius": _text(radius)}
    if "nearest" in given:
        lon, lat, k = _numbers("nearest", given["nearest"], 3, "three numbers: longitude, latitude, how many")
        found |= {"near": f"{_text(lon)},{_text(lat)}", "nearest": _text(k)}
    if given.get("history"):
        found["history"] = "true"
    if "timeout" in given:
        found["timeout"] = str(max(1, round(1000 * float(given["timeout"]))))
    return found
