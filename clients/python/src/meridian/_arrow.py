"""Record batches on their way: the stream of an answer, the body of a write, and geometry in both."""

from __future__ import annotations

import io
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import urllib3
from urllib3.response import BaseHTTPResponse

from ._engine import EngineResponse
from ._http import end
from .errors import BrokenOff

if TYPE_CHECKING:
    from typing_extensions import Self

STREAM = "application/vnd.apache.arrow.stream"
GEOARROW = {
    b"ARROW:extension:name": b"geoarrow.wkb",
    b"ARROW:extension:metadata": b'{"crs":"OGC:CRS84","crs_type":"authority_code"}',
}
READ_BYTES = 1 << 20
BROKEN = (urllib3.exceptions.HTTPError, pa.ArrowException, OSError, ValueError, AttributeError)
"""What a read raises: of an answer that ends early, and of one that another thread closes, whose parts are gone then."""


class Batches:
    """Record batches of an answer, in the order in which the server finds them.

    Iterate over it, and close it (or use `with`) if you leave early: that stops the work on the server. What is asked of it
    then is `BrokenOff`.
    """

    schema: pa.Schema
    """Columns: the id, the geometry as WKB (`geoarrow.wkb`), then the fields."""

    def __init__(self, answer: BaseHTTPResponse) -> None:
        self._answer = answer
        self._closed = self._ended = False
        try:
            self._reader = pa.ipc.open_stream(_source(answer))
        except (urllib3.exceptions.HTTPError, pa.ArrowException, OSError) as error:
            self.close()
            raise BrokenOff(f"the answer broke off: {error}") from error
        self.schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._ended:
            raise StopIteration
        if self._closed:
            raise self._broken()
        try:
            batch = self._reader.read_next_batch()
        except StopIteration:
            self._finish()
            raise
        except BROKEN as error:
            raise self._broken(error) from error
        # One that was in the buffer when another thread closed it.
        if self._closed:
            raise self._broken()
        return batch

    def _finish(self) -> None:
        # The last bytes say that the answer is complete, and free the connection for the next request.
        try:
            self._answer.read()
        except BROKEN as error:
            raise self._broken(error) from error
        if self._closed:
            raise self._broken()
        self._ended = True
        self._answer.release_conn()

    def _broken(self, error: Exception | None = None) -> BrokenOff:
        why = "it was closed before its end" if self._closed else error
        self.close()
        return BrokenOff(f"the answer broke off: {why}")

    def close(self) -> None:
        """Ends the answer, also while another thread reads it; the server stops its work on it."""
        self._closed = True
        end(self._answer)
        self._answer.release_conn()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _source(answer: BaseHTTPResponse) -> Any:
    """What the reader of Arrow reads from."""
    if isinstance(answer, EngineResponse):
        # A read of the engine costs nothing: each part of a batch is copied once, to where it stays.
        return pa.PythonFile(answer.source, mode="r")
    # Reads of the Arrow reader are small; those of a connection should not be.
    return io.BufferedReader(answer, READ_BYTES)


def body(table: pa.Table) -> bytes:
    """A table as an Arrow stream. Of dictionaries, a server takes those of texts."""
    for at, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type) and not is_text(column.type.value_type):
            table = table.set_column(at, table.schema.field(at).with_type(column.type.value_type), column.cast(column.type.value_type))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts, in whatever layout."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without its extension type, which a package such as geoarrow may have registered."""
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], type=column.type.storage_type)
    return column


def without_extensions(table: pa.Table) -> pa.Table:
    """The same table, its geometry as plain binary."""
    columns = [plain(column) for column in table.columns]
    return pa.table(columns, schema=pa.schema([pa.field(f.name, c.type) for f, c in zip(table.schema, columns)]))


def coordinates(points: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Longitudes and latitudes of points in WKB (21 bytes: order, kind, x, y; Meridian writes little-endian)."""

    def side(start: int) -> pa.ChunkedArray:
        cut = [
            pc.binary_slice(chunk, start, start + 8).cast(pa.binary(8)).view(pa.float64()) for chunk in points.chunks
        ]
        return pa.chunked_array(cut, type=pa.float64())

    return side(5), side(13)


def spread(table: pa.Table, geometry: str | None) -> pa.Table:
    """The same table with `lon` and `lat` in place of the point column `geometry`, unless a field has one of these names."""
    if geometry is None or geometry not in table.column_names:
        return table
    at = table.column_names.index(geometry)
    names = [name for name in ("lon", "lat") if name in table.column_names]
    if names:
        return table
    lon, lat = coordinates(table.column(at))
    return table.remove_column(at).add_column(at, "lat", lat).add_column(at, "lon", lon)


def numbers(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column of JSON numbers; sums of integers may have 128 bits."""
    if kind != pa.int64():
        return pa.array([None if v is None else float(v) for v in values], type=kind)
    try:
        return pa.array(values, type=kind)
    except (OverflowError, pa.ArrowInvalid):
        return pa.array(values, type=pa.decimal128(38, 0))
