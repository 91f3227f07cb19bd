"""Groups of an aggregate as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ._arrow import numbers

ESTIMATES = ("median", "percentile", "distinct", "top")
"""Functions with an error beside their value."""


def split(functions: Sequence[str]) -> list[str]:
    """Each function of these texts, which may have several with commas between; the server splits them in the same way.

    >>> split(["count, top(type, 2)", "max(mag)"])
    ['count', 'top(type, 2)', 'max(mag)']
    """
    found, depth = [""], 0
    for character in ",".join(functions):
        if character == "," and depth == 0:
            found.append("")
            continue
        depth = max(0, depth + (character == "(") - (character == ")"))
        found[-1] += character
    return [function.strip() for function in found]


def to_table(
    groups: list[dict[str, Any]], functions: list[str], window: bool, by: list[str], kind_of: Callable[[str], pa.DataType]
) -> pa.Table:
    """The columns of the windows, of the fields in `by`, and of each function with its error, under the caller's texts.

    `kind_of` is the type of a field: that of a column does not depend on the groups.
    """
    columns: list[tuple[str, Any]] = []
    if window:
        ends = [_ends(group.get("window")) for group in groups]
        for name, at in (("window_start", 0), ("window_end", 1)):
            texts = pa.array([end[at] for end in ends], type=pa.string())
            columns.append((name, texts.cast(pa.timestamp("us", "UTC"))))
    for field in by:
        values = [group.get("by") for group in groups]
        values = values if len(by) == 1 else [(value or {}).get(field) for value in values]
        columns.append((field, pa.array(values, type=kind_of(field))))
    names = _names(groups[0], functions) if groups else functions
    for function, name in zip(functions, names):
        columns.append((function, _values(function, [group[name] for group in groups], kind_of)))
        error = f"error({name})"
        # Without a group the answer does not say which functions have one.
        if error in groups[0] if groups else _kind(function) in ESTIMATES:
            columns.append((f"error({function})", pa.array([group[error] for group in groups], type=pa.float64())))
    # By position: a field may have the name of another column.
    return pa.table([values for _, values in columns], names=[name for name, _ in columns])


def _ends(window: str | None) -> tuple[str | None, str | None]:
    """The start and the end of a window. An event whose start is open lies in none.

    The year 9999 ends in the year 10000. The server writes that with a sign and six digits, and Python has no date for it.

    >>> _ends("9999-01-01T00:00:00Z/+010000-01-01T00:00:00Z")
    ('9999-01-01T00:00:00Z', None)
    """
    if window is None:
        return None, None
    start, end = window.split("/")
    return start, None if end.startswith("+") else end


def _names(group: Mapping[str, Any], functions: list[str]) -> list[str]:
    """The name of each function in the answer, which has them in the requested order.

    The server writes `median(mag)` as `percentile(mag,50)`, and `top(type, 2)` without the space.
    """
    others = iter([name for name in group if name not in ("window", "by", "count") and not name.startswith("error(")])
    return ["count" if function == "count" else next(others) for function in functions]


def _kind(function: str) -> str:
    return function.partition("(")[0]


def _field(function: str) -> str:
    """The field of a function, as the server reads it: a number may follow the last comma.

    >>> _field("percentile(a,b, 95)"), _field("max(a,b)")
    ('a,b', 'a,b')
    """
    inside = function.partition("(")[2].removesuffix(")")
    return inside.rpartition(",")[0].rstrip() if _kind(function) in ("percentile", "top") else inside


def _values(function: str, values: list[Any], kind_of: Callable[[str], pa.DataType]) -> pa.Array:
    kind = _kind(function)
    if kind == "top":
        return pa.array(values, type=pa.list_(pa.struct([("value", kind_of(_field(function))), ("count", pa.int64())])))
    if kind in ("count", "distinct"):
        return numbers(values, pa.int64())
    return numbers(values, pa.float64() if kind == "avg" else kind_of(_field(function)))
