"""Connections to a server: one pool, trust and the credential."""

from __future__ import annotations

import ipaddress
import ssl
import warnings
from collections.abc import Mapping
from urllib.parse import urlsplit

import urllib3
from urllib3.response import BaseHTTPResponse

from ._http import Http

CONNECT_S = 10.0
"""How long a connection may take to be made, in seconds."""


class Connections:
    """A pool of connections."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._pool = urllib3.PoolManager(maxsize=16, ssl_context=context, retries=False)

    def send(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], silence: float
    ) -> BaseHTTPResponse:
        """The answer, its body not yet read."""
        return self._pool.request(
            method,
            url,
            body=body,
            headers=headers,
            timeout=urllib3.Timeout(connect=CONNECT_S, read=silence),
            redirect=False,
            preload_content=False,
        )

    def close(self) -> None:
        """Closes the connections that are not in use."""
        self._pool.clear()


def network(url: str, token: str | None, ca: str | None, tenant: str | None, timeout: float, patience: float) -> Http:
    """Requests to the server at an address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r}: expected an address such as http://127.0.0.1:7117")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError("the address of a server has no query, fragment, user or password")
    headers = {}
    if token is not None:
        if not token.isascii() or not token.isprintable() or not token:
            raise ValueError("token: expected the text of a token")
        if parts.scheme == "http" and not _is_this_machine(parts.hostname):
            warnings.warn(f"anyone on the way to {parts.hostname} can read the token: use https", stacklevel=3)
        headers["Authorization"] = f"Bearer {token}"
    if tenant is not None:
        headers["Meridian-Tenant"] = tenant
    context = None
    if parts.scheme == "https":
        try:
            context = ssl.create_default_context(cafile=ca)
        except OSError as error:
            raise ValueError(f"ca: {ca}: {error}") from error
    return Http(url, Connections(context), headers, timeout, patience)


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
