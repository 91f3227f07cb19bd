"""What goes on: streams of events, searches, and saved searches."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from ._conditions import instant
from ._events import Message, Resumed, document
from ._http import Http
from .errors import Gone, NotFound, Problem, Unreachable

Event = dict[str, Any]
"""A GeoJSON feature."""


class Stream(Resumed[Event]):
    """Events of a collection as they are written: GeoJSON features with their `position`, and `when` if asked for."""

    def __init__(self, http: Http, path: list[str], asked: dict[str, str], after: str | None, patience: float) -> None:
        super().__init__(http, path, asked, after, patience)
        self._connect()
        if after is None:
            # The first message is the position; from here on nothing is missed, whatever happens to the connection.
            first = self._next_message()
            if first is None or first.id is None:
                self.close()
                raise Unreachable(f"{http.url}: the stream ended before it began")
            self._after = first.id

    def _take(self, message: Message) -> Event | None:
        if message.event == "end":
            end = document(message)
            self._after = end.get("after", self._after)
            self._disconnect()
            if end.get("reason") == "gone":
                self.close()
                raise Gone(410, {"type": "urn:meridian:problem:gone", "title": "Gone", **end})
            return None
        event = document(message) if message.data and message.event == "message" else None
        if message.id is not None:
            self._after = message.id
        return event


class Packets(Resumed[Event]):
    """Packets of a search or a saved search, as docs/searches.md describes them."""

    def __init__(self, http: Http, path: list[str], asked: dict[str, str], after: str | None, patience: float) -> None:
        super().__init__(http, path, asked, after, patience)
        self._connect()

    def _take(self, message: Message) -> Event | None:
        if message.event == "end":
            # Access has ended; the next connection is refused with the reason.
            self._disconnect()
            return None
        if not message.data:
            return None
        packet = document(message)
        self._after = str(packet["seq"])
        self._ended = packet.get("kind") == "complete"
        return packet


class Results(Resumed[Event]):
    """Results as GeoJSON features with the member `provider`, and `when` if asked for."""

    def __init__(self, packets: Packets) -> None:
        super().__init__(packets._http, packets._path, packets._asked, packets._after, packets._patience)
        self._packets = packets
        self._waiting: deque[Event] = deque()

    def __next__(self) -> Event:
        while not self._waiting:
            packet = next(self._packets)
            self._after = self._packets.position
            said: Event = {name: packet[name] for name in ("provider", "when") if name in packet}
            self._waiting.extend({**feature, **said} for feature in packet.get("features", ()))
            self._noted(packet)
        return self._waiting.popleft()

    def _noted(self, packet: Event) -> None:
        """Learns what a packet says besides results."""

    def _at_close(self) -> None:
        self._packets.close()


class Search(Results):
    """A search that runs: iterate over its results as they are found. Leaving it early ends it on the server.

    >>> with db.search(keywords="alaska", limit=5, providers=["meridian"]) as search:
    ...     found = list(search)
    >>> len(found), search.state, search.providers["meridian"]["state"]
    (5, 'complete', 'complete')
    """

    def __init__(self, http: Http, status: Mapping[str, Any]) -> None:
        self.id: str = status["search"]
        super().__init__(Packets(http, ["searches", self.id, "packets"], {}, None, 10.0))
        self.state = "running"
        """`running`, then `complete`, `partial` or `absent`."""
        self.providers: dict[str, dict[str, Any]] = dict(status.get("providers", {}))
        """State, number of results and time of each source."""

    def _noted(self, packet: Event) -> None:
        if packet.get("kind") == "provider":
            self.providers[packet["provider"]] = {k: v for k, v in packet.items() if k not in ("search", "seq", "kind")}
        elif packet.get("kind") == "complete":
            self.state = packet["state"]

    def packets(self) -> Packets:
        """Its packets instead of its results."""
        return self._packets

    def _at_close(self) -> None:
        super()._at_close()
        if self.state == "running" and not self._packets._ended:
            try:
                self._http.json("DELETE", ["searches", self.id], repeatable=True)
            except (Problem, Unreachable):
                # It ends by itself without a reader.
                pass


class SavedSearch:
    """A question that the server keeps, and answers with every new event."""

    def __init__(self, http: Http, id: str) -> None:
        self._http = http
        self.id = id

    def __repr__(self) -> str:
        return f"<meridian saved search {self.id} at {self._http.url}>"

    def status(self) -> dict[str, Any]:
        """Its question, its packets sent and lost, and the state of its webhook and polls."""
        found: dict[str, Any] = self._http.json("GET", ["saved-searches", self.id])
        return found

    def packets(self, after: int | None = None, patience: float = 60.0) -> Packets:
        """Its packets, from the oldest that is kept or behind `after`: an iterator, and an async iterator."""
        path = ["saved-searches", self.id, "packets"]
        return Packets(self._http, path, {}, None if after is None else str(after), patience)

    def results(self, after: int | None = None, patience: float = 60.0) -> Results:
        """Its results as GeoJSON features: an iterator, and an async iterator."""
        return Results(self.packets(after, patience))

    def delete(self) -> bool:
        """Deletes it; `False` if there is none."""
        try:
            self._http.json("DELETE", ["saved-searches", self.id], repeatable=True)
        except NotFound:
            return False
        return True


def question(members: Mapping[str, Any]) -> dict[str, Any]:
    """The question of a search in JSON; instants may be Python's.

    >>> import datetime as dt
    >>> question({"keywords": "flood", "near": (-0.12, 51.5), "start": dt.date(2026, 1, 1), "end": None})
    {'keywords': 'flood', 'near': [-0.12, 51.5], 'start': '2026-01-01'}
    """
    asked: dict[str, Any] = {}
    for name, value in members.items():
        if value is None:
            continue
        if name in ("start", "end"):
            value = instant(value)
        asked[name] = list(value) if isinstance(value, tuple) else value
    return asked


