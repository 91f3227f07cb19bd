"""Server-Sent Events: messages of a connection, and a connection that is made again where it was cut."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import urllib3
from urllib3.response import BaseHTTPResponse

from ._http import Http, end
from .errors import BrokenOff, Overloaded, Unreachable

if TYPE_CHECKING:
    from typing_extensions import Self

SILENCE_S = 45.0
"""A server says something every 15 s; after three times that, the connection is dead."""
PAUSE_S = 0.2
PAUSE_MAX_S = 5.0

Item = TypeVar("Item")


@dataclass
class Message:
    """One message."""

    event: str
    data: str
    id: str | None


def messages(answer: BaseHTTPResponse) -> Iterator[Message]:
    """The messages of a connection; comments and unknown fields are left out."""
    event, id, rest = "", None, b""
    data: list[str] = []
    # `read1` returns what has arrived; `read` would wait until its buffer is full.
    while piece := answer.read1(1 << 16, decode_content=True):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            name, _, value = line.rstrip(b"\r").decode("utf-8", "replace").partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                event = value
            elif name == "data":
                data.append(value)
            elif name == "id":
                id = value
            elif not name and not value and (data or id is not None or event):
                yield Message(event or "message", "\n".join(data), id)
                event, data, id = "", [], None


class Resumed(Generic[Item]):
    """An iterator over messages that reconnects, also an async one. Closing it ends a wait in another thread."""

    def __init__(self, http: Http, path: list[str], asked: dict[str, str], after: str | None, patience: float) -> None:
        self._http, self._path, self._asked, self._patience = http, path, asked, patience
        self._after = after
        self._answer: BaseHTTPResponse | None = None
        self._messages: Iterator[Message] = iter(())
        self._closed = threading.Event()
        self._ended = False
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    @property
    def position(self) -> str | None:
        """Where to resume: `after` of another one starts behind what this one has given."""
        return self._after

    def _take(self, message: Message) -> Item | None:
        """What a message gives the caller, if anything; notes the position."""
        raise NotImplementedError

    # The connection

    def _connect(self) -> None:
        """Opens the connection, trying again for as long as the patience lasts."""
        until, pause = time.monotonic() + self._patience, PAUSE_S
        while not self._closed.is_set():
            try:
                asked = dict(self._asked) if self._after is None else {**self._asked, "after": self._after}
                answer = self._http.open("GET", self._path, asked, headers={"Accept": "text/event-stream"}, timeout=SILENCE_S)
            except (Unreachable, Overloaded):
                if time.monotonic() + pause > until:
                    raise
                self._closed.wait(pause)
                pause = min(2 * pause, PAUSE_MAX_S)
                continue
            with self._lock:
                if self._closed.is_set():
                    answer.close()
                    return
                self._answer = answer
            if answer.status == 204:
                self._ended = True
            self._messages = messages(answer)
            return

    def _disconnect(self) -> None:
        with self._lock:
            answer, self._answer = self._answer, None
        self._messages = iter(())
        if answer is not None:
            answer.close()

    def _next_message(self) -> Message | None:
        """The next message; `None` where the connection ended."""
        try:
            return next(self._messages, None)
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError):
            # `close` in another thread, a network that is gone, or a server that was killed.
            return None

    # The iterator

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        while not self._closed.is_set() and not self._ended:
            if self._answer is None:
                self._connect()
                continue
            message = self._next_message()
            if message is None:
                self._disconnect()
                self._closed.wait(PAUSE_S)
                continue
            item = self._take(message)
            if item is not None:
                return item
        self.close()
        raise StopIteration

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        # A thread of its own: many streams at once must not take those of everything else.
        if self._closed.is_set():
            raise StopAsyncIteration
        if self._threads is None:
            self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="meridian")
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._threads, lambda: next(self, _END))
        except asyncio.CancelledError:
            # Otherwise the thread would wait on, and take an event that nobody gets.
            self.close()
            raise
        if found is _END:
            raise StopAsyncIteration
        return found

    # The end

    def close(self) -> None:
        """Ends it, also while another thread waits for an event."""
        self._closed.set()
        with self._lock:
            answer, self._answer = self._answer, None
        if answer is not None:
            end(answer)
        if self._threads is not None:
            self._threads.shutdown(wait=False)
        self._at_close()

    def _at_close(self) -> None:
        """What else ends with it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


_END: Any = object()


def document(message: Message) -> dict[str, Any]:
    """The JSON object of a message."""
    try:
        found = json.loads(message.data)
    except ValueError as error:
        raise BrokenOff(f"a message is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BrokenOff("a message is not a JSON object")
    return found

