"""A server, or a part of it that a token may see; or a data folder in this process."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from ._conditions import Instant
from ._engine import Engine
from ._http import Http
from ._network import network
from .collection import Collection
from .errors import Conflict, NeedsServer, NotFound
from .live import SavedSearch, Search, question

if TYPE_CHECKING:
    from typing_extensions import Self

URL = "http://127.0.0.1:7117"


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    tenant: str | None = None,
    timeout: float = 120.0,
    patience: float = 30.0,
) -> Database:
    """A client of the server at `url`; nothing is sent before the first question.

    Without arguments, the environment counts as for the command line: `MERIDIAN_URL`, `MERIDIAN_TOKEN`, `MERIDIAN_CA`; else
    the server is `http://127.0.0.1:7117`. `ca` is a file with the authorities to trust in place of the system's, and
    `tenant` the tenant that an operator means. `timeout` is the longest silence of the server, `patience` the time for all
    retries of one request, both in seconds.

    >>> db = meridian.connect(url)
    >>> [collection.name for collection in db.collections()]
    ['countries', 'earthquakes', 'ships', 'storms']
    """
    found = url or os.environ.get("MERIDIAN_URL") or URL
    trusted = os.fspath(ca) if ca is not None else os.environ.get("MERIDIAN_CA") or None
    if token is None:
        token = os.environ.get("MERIDIAN_TOKEN", "").strip() or None
    return Database(network(found, token, trusted, tenant, timeout, patience))


def open(
    folder: str | os.PathLike[str] | None = None,
    *,
    create: bool = True,
    saved_searches: bool = False,
    tenant: str | None = None,
    timeout: float | None = None,
    patience: float = 30.0,
) -> Database:
    """A data folder without a server: the engine runs in this process, and has the folder to itself until `close`.

    A folder that is not there is made, unless `create` is false. Without `folder`, all is kept in memory. A folder that
    this process has open is shared, and closed with its last user. `saved_searches` runs those of the folder, with their
    webhooks; sources outside of the folder need a server. `timeout` is the longest silence in seconds, by default any.
    Needs the package `meridian-engine`, a wheel that `make wheel` builds (docs/python.md).

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with meridian.open(folder.name) as own:
    ...     notes = own.create("notes", "seen:Date,note:String")
    ...     notes.append([{"seen": "2026-01-31T12:00:00Z", "note": "hello"}]).written
    1
    >>> with meridian.open(folder.name, create=False) as own:
    ...     len(own["notes"])
    1
    """
    found = Path(folder).resolve() if folder is not None else None
    url = found.as_uri() if found else "memory:"
    engine = Engine(url, str(found) if found else None, create, saved_searches)
    headers = {} if tenant is None else {"Meridian-Tenant": tenant}
    return Database(Http(url, engine, headers, math.inf if timeout is None else timeout, patience))


class Database:
    """A client of one server, or of the engine in its place; threads may share it. Made by `connect` and `open`.

    >>> "ships" in db
    True
    >>> db.version()["name"]
    'meridian'
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    def __repr__(self) -> str:
        return f"<meridian at {self._http.url}>"

    @property
    def url(self) -> str:
        """Address of the server, or of the folder."""
        return self._http.url

    # Collections

    def __getitem__(self, name: str) -> Collection:
        return Collection(self._http, name)

    def __contains__(self, name: str) -> bool:
        return self[name].exists()

    def __iter__(self) -> Iterator[str]:
        return (collection.name for collection in self.collections())

    def collections(self) -> list[Collection]:
        """The collections that this token may read, by name."""
        listed = self._http.json("GET", ["collections"], {"f": "json"})["collections"]
        return [self[name] for name in sorted(found["id"] for found in listed)]

    def create(
        self,
        name: str,
        schema: Mapping[str, Any] | str,
        *,
        durability: str | None = None,
        retention: str | None = None,
        retention_bytes: int | None = None,
        partitions: int | None = None,
    ) -> Collection:
        """Creates a collection with a JSON Schema, `schema_of(table)`, or the text of a SimpleFeatureType spec.

        An existing one with the same schema keeps its events; with another schema it is a `Conflict`, unless it was never
        written to. One that another client makes during the call keeps its types and settings: a `Conflict`, unless
        `schema` is a JSON Schema of the same fields. `retention` is an ISO 8601 duration.
        """
        # A frame of pandas can be unpacked like a mapping, into its columns.
        if not isinstance(schema, (str, Mapping)):
            expected = "a JSON Schema, which `meridian.schema_of(data)` makes of a table or frame, or the text of a spec"
            raise TypeError(f"a {type(schema).__name__} is no schema: expected {expected}")
        settings = {
            "durability": durability,
            "retention": retention,
            "retention_bytes": retention_bytes,
            "partitions": partitions,
        }
        asked = {setting: str(value) for setting, value in settings.items() if value is not None}
        # Without the condition, an empty collection made meanwhile would get this schema.
        headers = {} if name in self else {"If-None-Match": "*"}
        try:
            if isinstance(schema, str):
                headers["Content-Type"] = "text/plain"
                self._http.json("PUT", ["collections", name], asked, body=schema.encode(), headers=headers, repeatable=True)
            else:
                described = {"type": "object", **schema}
                self._http.json("PUT", ["collections", name], asked, document=described, headers=headers, repeatable=True)
        except Conflict as refusal:
            if refusal.status != 412 or isinstance(schema, str) or not _same_fields(self[name].schema, schema):
                raise
        return self[name]

    def drop(self, name: str) -> bool:
        """Removes a collection with all its events; `False` if there is none."""
        try:
            self._http.json("DELETE", ["collections", name])
        except NotFound:
            return False
        return True

    def rename(self, name: str, new: str) -> Collection:
        """Gives a collection another name, under which alone it is found from then on.

        A taken name is a `Conflict`. A collection in a bucket keeps its name.
        """
        self._http.json("PATCH", ["collections", name], document={"id": new})
        return self[new]

    # Searches

    def search(
        self,
        keywords: str | None = None,
        *,
        near: tuple[float, float] | None = None,
        radius: float | None = None,
        bbox: Sequence[float] | None = None,
        polygon: Mapping[str, Any] | None = None,
        address: str | None = None,
        author: str | None = None,
        providers: Sequence[str] | None = None,
        start: Instant | None = None,
        end: Instant | None = None,
        media: str | None = None,
        language: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        priority: str | None = None,
        keep: Mapping[str, Any] | None = None,
    ) -> Search:
        """Asks Meridian's collections and outside sources at once (docs/searches.md): results come as they are found.

        One of `keywords`, a place and `author` is needed. `near` is longitude and latitude, `radius` metres, `timeout`
        seconds.
        """
        asked = question(
            {
                "keywords": keywords,
                "near": near,
                "radius": radius,
                "bbox": list(bbox) if bbox is not None else None,
                "polygon": polygon,
                "address": address,
                "author": author,
                "providers": list(providers) if providers is not None else None,
                "start": start,
                "end": end,
                "media": media,
                "language": language,
                "limit": limit,
                "timeout": None if timeout is None else round(1000 * timeout),
                "priority": priority,
                "keep": keep,
            }
        )
        return Search(self._http, self._http.json("POST", ["searches"], document=asked))

    def save_search(
        self,
        name: str | None = None,
        *,
        webhook: Mapping[str, str] | None = None,
        poll_s: int | None = None,
        **members: Any,
    ) -> SavedSearch:
        """Saves a question, which covers every event written from now on (docs/saved-searches.md).

        `members` are those of `search`, and `when` with transitions of moving objects. `webhook` has `url` and `secret`;
        `poll_s` are the seconds between two polls of outside sources.

        >>> saved = db.save_search("strong", keywords="alaska", providers=["meridian"])
        >>> saved.status()["name"], saved.delete()
        ('strong', True)
        """
        self._saves()
        document = {"name": name, "question": question(members), "webhook": webhook, "poll_s": poll_s}
        sent = {member: value for member, value in document.items() if value is not None}
        return SavedSearch(self._http, self._http.json("POST", ["saved-searches"], document=sent)["id"])

    def saved_searches(self) -> list[SavedSearch]:
        """All saved searches of the tenant."""
        self._saves()
        asked = {"limit": "1000"}
        found: list[SavedSearch] = []
        while True:
            page = self._http.json("GET", ["saved-searches"], asked)
            found += [SavedSearch(self._http, saved["id"]) for saved in page["saved_searches"]]
            following = [link["href"] for link in page["links"] if link["rel"] == "next"]
            if not following:
                return found
            asked["after"] = parse_qs(urlsplit(following[0]).query)["after"][0]

    def _saves(self) -> None:
        transport = self._http._transport
        if isinstance(transport, Engine) and not transport.saved_searches:
            raise NeedsServer(
                f"saved searches of {self.url} do not run here: open it with saved_searches=True, or run `meridian serve`"
            )

    def providers(self) -> list[dict[str, Any]]:
        """The sources that a search can ask, and their state."""
        listed: list[dict[str, Any]] = self._http.json("GET", ["providers"])["providers"]
        return listed

    # The server

    def version(self) -> dict[str, Any]:
        """Name and version of the server."""
        found: dict[str, Any] = self._http.json("GET", ["version"])
        return found

    def close(self) -> None:
        """Closes the connections that are not in use, or the folder."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _same_fields(there: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether a collection has exactly the fields of a schema; ids that the server makes are beside them."""
    have, want = there["properties"], asked.get("properties", {})
    members = ("type", "format", "x-ogc-role", "x-meridian-object")
    return {name for name in have if not have[name].get("readOnly")} <= set(want) <= set(have) and all(
        have[name].get(member) == want[name].get(member) for name in want for member in members
    )
