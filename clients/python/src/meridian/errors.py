"""What can go wrong: one exception a kind of failure, all of them a `MeridianError`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


class MeridianError(Exception):
    """Every error of this package, apart from wrong arguments (`TypeError`, `ValueError`)."""


class Unreachable(MeridianError):
    """No answer: the server cannot be reached, is not trusted, or is silent for too long."""


class CannotOpen(MeridianError):
    """A data folder that is not opened: another process has it open, it is damaged, or it is none."""


class Closed(MeridianError):
    """The data folder is closed, or this process is a fork of the one that opened it."""


class NeedsServer(MeridianError):
    """What the engine in this process does not do: run `meridian serve`, and `connect` to it."""


class BrokenOff(MeridianError):
    """An answer ended before it was complete. Nothing of it should be used."""


class MissingExtra(MeridianError, ImportError):
    """A package that is not installed; the message names the extra that brings it."""


class MissingData(UserWarning):
    """Files of the collection are damaged on the server, so that events may be missing in an answer."""


class Problem(MeridianError):
    """The server refused a request: problem details of RFC 9457.

    >>> try:
    ...     db["earthquakes"].query(filter="mag >").count()
    ... except meridian.Problem as problem:
    ...     print(problem.status, problem.kind, problem.field)
    400 invalid-parameter filter
    """

    status: int
    """Status of HTTP."""
    kind: str
    """The end of `type`, such as `invalid-parameter` (docs/formats.md lists them)."""
    title: str
    """The kind in words."""
    detail: str
    """The error, and what was expected."""
    field: str | None
    """The parameter or property at fault."""
    line: int | None
    """The line of a body, or the row of Arrow, at fault. `details["feature"]` is the ordinal of an event of GeoJSON.

    `append` counts both over all of its events, whatever their parts.
    """
    details: Mapping[str, Any]
    """All members of the problem, such as `errors`, `removes` or `first`."""
    request_id: str | None
    """The id of the request, which the log of the server has."""

    def __init__(self, status: int, details: Mapping[str, Any], request_id: str | None = None) -> None:
        self.status = status
        self.kind = str(details.get("type", "")).rpartition(":")[2]
        self.title = str(details.get("title", ""))
        self.detail = str(details.get("detail", ""))
        self.field = details.get("field")
        self.line = details.get("line")
        self.details = details
        self.request_id = request_id
        # The sentence of a body's mistake begins with its line and field.
        field = f"{self.field}: " if self.field and self.field not in self.detail else ""
        super().__init__(f"{status} {self.title}: {field}{self.detail}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.status, dict(self.details), self.request_id))

    def _behind(self, events: int) -> Problem:
        """The same problem, of a part of a body that `events` events precede."""
        details = _counted(self.details, events)
        if "errors" in details:
            details["errors"] = [_counted(mistake, events) for mistake in details["errors"]]
        if events and self.detail:
            details["detail"] = str(details["detail"]).replace("nothing was written", "nothing of this part was written", 1)
        return type(self)(self.status, details, self.request_id)


class Invalid(Problem):
    """400, 413, 415, 422: the request, or an event of a write, has to be corrected."""


_NUMBERS = re.compile(
    r"(^(?:\d+ mistakes, nothing was written; the first: )?(?:line|feature) | is also that of event (?=\d+: an id may stand once$))(\d+)"
)
"""The number at the begin of the server's sentence, and at its end that of the other event of an id."""


def _counted(mistake: Mapping[str, Any], before: int) -> dict[str, Any]:
    """Members of a mistake whose numbers count `before` events more."""
    counted = {name: mistake[name] + before for name in ("line", "feature") if isinstance(mistake.get(name), int)}
    if counted and isinstance(mistake.get("detail"), str):
        counted["detail"] = _NUMBERS.sub(lambda found: f"{found[1]}{int(found[2]) + before}", mistake["detail"])
    return {**mistake, **counted}


class Denied(Problem):
    """401, 403: the token is missing, invalid, or may not do this."""


class NotFound(Problem):
    """404: there is no such thing, or not for this token."""


class Conflict(Problem):
    """409, 412: the name or id is in use, or a retention would remove events (`details["removes"]`)."""


class Gone(Problem):
    """410: a page, a position or a packet has expired. `details["first"]` is where to resume, if there is such."""


class Overloaded(Problem):
    """429, 503: a quota is used up or the server is overloaded, also after the retries of this client."""


class TooLate(Problem):
    """408, 504: the time was not enough. Narrow the question, or give it a larger `timeout`."""


_BY_STATUS: dict[int, type[Problem]] = {
    400: Invalid, 413: Invalid, 415: Invalid, 422: Invalid,
    401: Denied, 403: Denied,
    404: NotFound, 409: Conflict, 412: Conflict, 410: Gone,
    429: Overloaded, 503: Overloaded,
    408: TooLate, 504: TooLate,
}  # fmt: skip


def problem(status: int, details: Mapping[str, Any], request_id: str | None = None) -> Problem:
    """The exception for an answer of this status."""
    return _BY_STATUS.get(status, Problem)(status, details, request_id)
