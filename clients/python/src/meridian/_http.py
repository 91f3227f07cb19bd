"""HTTP: requests, retries, and errors as exceptions."""

from __future__ import annotations

import json
import random
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import urllib3
from urllib3.response import BaseHTTPResponse

from .errors import BrokenOff, MissingData, Problem, Unreachable, problem

Parameters = Mapping[str, str]

PAUSE_S = 0.25
"""The first pause before a retry, where the server names none; it doubles from one to the next."""
PAUSE_MAX_S = 10.0
ANSWER_MAX = 256 << 20
"""Bytes of a JSON answer that is read whole."""
SENTENCE_MAX = 500
"""Bytes of a plain text that are looked at for its first line."""


class Transport(Protocol):
    """What carries requests: connections to a server, or the engine in this process."""

    def send(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], silence: float
    ) -> BaseHTTPResponse:
        """The answer, its body not yet read; `silence` seconds is the longest wait. Fails as urllib3 does."""

    def close(self) -> None:
        """Lets go of what is not in use."""


class Http:
    """Requests to one server, or to the engine in its place. Threads may share it."""

    def __init__(
        self, url: str, transport: Transport, headers: Mapping[str, str], timeout: float, patience: float
    ) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.patience = patience
        self._headers = {"User-Agent": "meridian-python", **headers}
        self._transport = transport

    def close(self) -> None:
        """Closes the connections that are not in use, or the folder."""
        self._transport.close()

    def address(self, path: Sequence[str], parameters: Parameters | None = None) -> str:
        """The address of a resource; names are escaped."""
        for part in path:
            # Addresses resolve these: they would be of another resource.
            if part in ("", ".", ".."):
                raise ValueError(f"{part!r} names nothing")
        query = "?" + urlencode(parameters, quote_via=quote, safe=",:/") if parameters else ""
        return "/".join([self.url, *(quote(part, safe="") for part in path)]) + query

    def open(
        self,
        method: str,
        path: Sequence[str],
        parameters: Parameters | None = None,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
        timeout: float | None = None,
    ) -> BaseHTTPResponse:
        """The answer with a status below 400, its body not yet read.

        429 and 503 are asked again after `Retry-After`; so is a request without an answer, if it is `repeatable` (by
        default a GET). All retries together take `patience` seconds at most. `timeout` is the longest silence of the
        server in seconds.
        """
        url = self.address(path, parameters)
        again = method == "GET" if repeatable is None else repeatable
        until = time.monotonic() + self.patience
        pause = PAUSE_S
        while True:
            failure: Unreachable | Problem
            try:
                sent = {**self._headers, **(headers or {})}
                answer = self._transport.send(method, url, body, sent, timeout or self.timeout)
            except urllib3.exceptions.HTTPError as error:
                failure, wanted = self._unreachable(error), None
                if not again or _hopeless(error):
                    raise failure from error
            else:
                if answer.status < 300:
                    _warn(answer)
                    return answer
                failure = _refusal(answer)
                if answer.status not in (429, 503) or failure.kind == "damaged":
                    raise failure
                wanted = _seconds(answer.headers.get("Retry-After"))
            # With jitter, so that clients that were refused together do not come back together.
            wait = (wanted or pause) * random.uniform(1.0, 1.25)
            if time.monotonic() + wait > until:
                raise failure
            time.sleep(wait)
            pause = min(2 * pause, PAUSE_MAX_S)

    def json(
        self,
        method: str,
        path: Sequence[str],
        parameters: Parameters | None = None,
        *,
        document: Any = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
        timeout: float | None = None,
    ) -> Any:
        """The JSON answer of a request, `None` where it has no content."""
        sent = dict(headers or {})
        if document is not None:
            body = json.dumps(document, allow_nan=False).encode()
            sent.setdefault("Content-Type", "application/json")
        answer = self.open(
            method, path, parameters, body=body, headers=sent, repeatable=repeatable, timeout=timeout
        )
        return parse(answer)

    def _unreachable(self, error: Exception) -> Unreachable:
        reason = getattr(error, "reason", None) or error
        if isinstance(error, urllib3.exceptions.SSLError) and "certificate verify failed" in str(error):
            return Unreachable(
                f"{self.url}: no trusted authority has signed its certificate: `ca`, or MERIDIAN_CA, names a file with the one to trust ({error})"
            )
        if isinstance(error, urllib3.exceptions.ReadTimeoutError):
            return Unreachable(f"{self.url}: it was silent for too long; `timeout` of connect() and open() is the limit")
        return Unreachable(f"{self.url}: {reason}")


def end(answer: BaseHTTPResponse) -> None:
    """Ends an answer, also while another thread reads it."""
    # That thread holds the buffer, which `close` would wait for; the end of the connection wakes it.
    for act in (answer.shutdown, answer.close):
        try:
            act()
        except (OSError, ValueError, RuntimeError):
            pass


def parse(answer: BaseHTTPResponse) -> Any:
    """The JSON of an answer; integers keep all their digits."""
    data = _whole(answer)
    try:
        return json.loads(data) if data else None
    except ValueError as error:
        raise BrokenOff(f"the answer is not JSON: {error}") from error


def _whole(answer: BaseHTTPResponse) -> bytes:
    try:
        data = answer.read(ANSWER_MAX + 1)
        if len(data) > ANSWER_MAX:
            raise BrokenOff(f"the answer has more than {ANSWER_MAX} bytes")
        return data
    except urllib3.exceptions.HTTPError as error:
        raise BrokenOff(f"the answer broke off: {error}") from error
    finally:
        # A connection whose answer was not read to its end is of no use to the next request.
        if answer.length_remaining:
            answer.close()
        answer.release_conn()


def _refusal(answer: BaseHTTPResponse) -> Problem:
    data, details = b"", None
    try:
        data = _whole(answer)
        details = json.loads(data)
    except (BrokenOff, ValueError):
        pass
    if not isinstance(details, dict):
        said = _sentence(data) if answer.headers.get("Content-Type", "").lower().startswith("text/plain") else ""
        details = {"title": answer.reason or "Refused", "detail": said or "the answer is no problem details of RFC 9457"}
    return problem(answer.status, details, answer.headers.get("X-Request-Id"))


def _sentence(data: bytes) -> str:
    """The first line of a text, such as the one of a port that speaks TLS."""
    lines = data[:SENTENCE_MAX].decode("utf-8", "replace").strip().splitlines()
    return "".join(filter(str.isprintable, lines[0])) if lines else ""


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def _hopeless(error: Exception) -> bool:
    """Whether another attempt cannot help: a server that is not trusted now is not trusted a second later."""
    return isinstance(error, (urllib3.exceptions.SSLError, urllib3.exceptions.LocationValueError, urllib3.exceptions.NameResolutionError))


def _warn(answer: BaseHTTPResponse) -> None:
    missing = answer.headers.get("Meridian-Missing")
    if missing:
        warnings.warn(f"{missing} damaged files on the server: events may be missing", MissingData, stacklevel=4)
