"""The engine in this process, in the place of a server."""

from __future__ import annotations

import importlib
import math
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import urllib3

from .errors import CannotOpen, Closed, MissingExtra

if TYPE_CHECKING:
    import meridian_engine


class EngineResponse(urllib3.HTTPResponse):
    """An answer of the engine, which everything reads as it reads one of a server."""

    def __init__(self, engine: Engine, source: meridian_engine.EngineResponse) -> None:
        body: Any = source
        headers = urllib3.HTTPHeaderDict(source.headers)
        super().__init__(body, headers, source.status, preload_content=False, enforce_content_length=False)
        self.source = source
        """Its bytes, without a step between."""
        # The folder stays open for as long as this is read, no matter who opened it.
        self._engine = engine

    def shutdown(self) -> None:
        """Ends it, and a wait in another thread."""
        self.source.close()


@dataclass
class _Open:
    """A folder that this process has open, and by how many it is used."""

    engine: meridian_engine.Engine
    saved_searches: bool
    users: int = 0


_open: dict[str, _Open] = {}
"""By the real path: a cell of a notebook that opens a folder is run again while the folder is open."""
_lock = threading.RLock()
"""One that its own thread takes twice: garbage may be collected, and a folder closed, while it is held."""
# A child has the memory of these, and none of their threads.
os.register_at_fork(after_in_child=_open.clear)


class Engine:
    """An open folder as a transport: closed at the latest when it is garbage, or when the interpreter ends."""

    def __init__(self, url: str, folder: str | None, create: bool, saved_searches: bool) -> None:
        found = _opened(folder, create, saved_searches)
        self._url = url
        self._engine = found.engine
        self.saved_searches = found.saved_searches
        self._end = weakref.finalize(self, _let_go, folder, found)

    def send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], silence: float) -> EngineResponse:
        """The answer, its body not yet read."""
        limit = None if math.isinf(silence) else silence
        try:
            return EngineResponse(self, self._engine.request(method, url.removeprefix(self._url), list(headers.items()), body, limit))
        except TimeoutError as error:
            pool: Any = None
            raise urllib3.exceptions.ReadTimeoutError(pool, url, str(error)) from error
        except (ConnectionError, RuntimeError) as error:
            raise Closed(f"{self._url}: {error}") from error

    def close(self) -> None:
        """Closes the folder, unless it is opened elsewhere in this process."""
        self._end()


def _opened(folder: str | None, create: bool, saved_searches: bool) -> _Open:
    try:
        native = importlib.import_module("meridian_engine")
    except ImportError as error:
        # A file, not a name: on PyPI the name is not Meridian's.
        raise MissingExtra(
            "meridian.open() needs the engine: pip install meridian_engine-*.whl, which `make wheel` and `make package` build, "
            "or ./crates/python in the source of Meridian; a server needs none of it: meridian.connect(url)"
        ) from error
    with _lock:
        found = _open.get(folder) if folder is not None else None
        if found is None:
            try:
                found = _Open(native.Engine(folder, create, saved_searches), saved_searches)
            except OSError as error:
                raise CannotOpen(str(error)) from error
            if folder is not None:
                _open[folder] = found
        elif saved_searches and not found.saved_searches:
            raise CannotOpen(f"{folder} is open in this process without saved searches: close() it first")
        found.users += 1
        return found


def _let_go(folder: str | None, found: _Open) -> None:
    with _lock:
        found.users -= 1
        if found.users:
            return
        # Under the lock: who opens it meanwhile waits until it is closed.
        if folder is not None and _open.get(folder) is found:
            del _open[folder]
        found.engine.close()
