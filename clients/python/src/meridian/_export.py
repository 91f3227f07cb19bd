"""Answers in files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import urllib3

from .errors import BrokenOff

if TYPE_CHECKING:
    from .query import Query

PIECE_BYTES = 1 << 20


def export(query: Query, file: str | os.PathLike[str]) -> int:
    """Writes the events of a query to a file, completely or not at all; returns its bytes."""
    path = Path(file)
    form = FORMS.get(path.suffix.lower())
    if form is None:
        if path.suffix.lower() in COMMAND_ONLY:
            url = query.collection._http.url
            server = ["--url", url] if url.startswith("http") else []
            command = shlex.join(["meridian", "export", query.collection.name, str(path), *server])
            raise ValueError(f"{path}: Python does not write {path.suffix.lower()}, the command line does: {command}")
        raise ValueError(f"{path}: expected a file that ends in {', '.join(FORMS)}")
    # Beside it, so that it can take its place; with the process, so that two exports do not write into each other's.
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as out:
            form(query, out)
            out.flush()
            os.fsync(out.fileno())
            written = out.tell()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return written


def _pieces(query: Query, form: str) -> Iterator[bytes]:
    answer = query._open(form)
    try:
        yield from answer.stream(PIECE_BYTES)
    except urllib3.exceptions.HTTPError as error:
        raise BrokenOff(f"the answer broke off: {error}") from error
    finally:
        answer.close()
        answer.release_conn()


def _as_it_comes(form: str) -> Callable[[Query, BinaryIO], None]:
    def write(query: Query, out: BinaryIO) -> None:
        for piece in _pieces(query, form):
            out.write(piece)

    return write


def _arrow_file(query: Query, out: BinaryIO) -> None:
    with query.batches() as batches, pa.ipc.new_file(out, batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _feature_collection(query: Query, out: BinaryIO) -> None:
    """The lines of NDJSON as members of one list."""
    out.write(b'{"type":"FeatureCollection","features":[\n')
    rest = b""
    first = True
    for piece in _pieces(query, "ndjson"):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            out.write(line if first else b",\n" + line)
            first = False
    out.write(b"\n]}\n")


FORMS: dict[str, Callable[[Any, BinaryIO], None]] = {
    ".parquet": _as_it_comes("parquet"),
    ".geoparquet": _as_it_comes("parquet"),
    ".arrow": _arrow_file,
    ".arrows": _as_it_comes("arrow"),
    ".csv": _as_it_comes("csv"),
    ".fgb": _as_it_comes("flatgeobuf"),
    ".geojson": _feature_collection,
    ".json": _feature_collection,
    ".ndjson": _as_it_comes("ndjson"),
    ".geojsonl": _as_it_comes("ndjson"),
    ".jsonl": _as_it_comes("ndjson"),
    ".geojsons": _as_it_comes("geojsonseq"),
    ".gpkg": _as_it_comes("gpkg"),
}
COMMAND_ONLY = (".pmtiles",)
"""Extensions that `meridian export` writes, and this package does not."""
