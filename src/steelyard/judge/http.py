"""Requests over HTTP: kept connections, no redirects, no retries, replies read up to a limit.

aiohttp does it in a tenth of the processor time that the client of the openai package takes, which would be
half of all that judging a turn costs (docs/how-to/many-machines.md). A session is made for each request; it
costs nothing beside it: one that somebody forgets to close complains on the terminal when the program ends.
"""

from __future__ import annotations

import json
import os
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import LOOPBACK, redacted_url
from steelyard.errors import MalformedReply
from steelyard.judge.endpoint import HTTPReply

_log = SafeLogger("steelyard.judge")
_MOST_BYTES = 8_000_000
"""17,000 tokens with the log probabilities of five alternatives each."""
_MOST_BYTES_OF_VECTORS = 16_000_000
"""512 vectors of 1,536 numbers that are written out, some 20 bytes each; read, they take thrice as much."""
_IN_QUERY = "!$%&'()*+,-./:;=?@_~"
# The whole request has its seconds from whoever sends it.
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=None)


class HTTPSender:
    """Brings requests to one server.

    Args:
        address: Where it is. User and password in it are sent in place of a key, its query with each request.
        headers: What is sent along.
        connections: How many are kept, and used at a time.
        clear_proxy: Whether a proxy may be used that reads what is sent.
    """

    def __init__(
        self, address: str, headers: Mapping[str, str], *, connections: int, clear_proxy: bool = True
    ) -> None:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        self._address = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._query = f"?{quote(parts.query, safe=_IN_QUERY)}" if parts.query else ""
        # Replies are a few kilobytes, and a packed one may unpack to more than any limit.
        own = {"Accept": "application/json", "Accept-Encoding": "identity"}
        self._headers = {"Content-Type": "application/json", **own, **headers}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        self._proxy = _proxy_to(self._address) if clear_proxy or parts.scheme == "https" else None
        self._connections = _Connections(
            limit=connections, ssl=_trusted() if parts.scheme == "https" else True
        )

    async def exchange(self, path: str, body: Mapping[str, Any]) -> HTTPReply:
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        most = _MOST_BYTES_OF_VECTORS if path == "/embeddings" else _MOST_BYTES
        async with self.request("POST", path, data) as reply:
            return HTTPReply(reply.status, reply.headers, await _content(reply, most))

    @asynccontextmanager
    async def request(
        self, method: str, path: str, data: bytes | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A reply whose body is still to be read; what is not read costs the connection."""
        url = URL(f"{self._address}{path}{self._query}", encoded=True)
        async with (
            aiohttp.ClientSession(
                connector=self._connections,
                connector_owner=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=_NO_TIMEOUT,
                auto_decompress=False,
            ) as session,
            # A redirect would carry key and content to where nobody pointed us.
            session.request(
                method, url, data=data, headers=self._headers, proxy=self._proxy, allow_redirects=False
            ) as reply,
        ):
            yield reply

    async def aclose(self) -> None:
        await self._connections.close()


class _Connections(aiohttp.TCPConnector):
    """Connections that may be forgotten, as with a loop that has ended: their sockets close with them."""

    def __del__(self, _warnings: Any = None) -> None:
        """Say nothing; aiohttp logs an error for each."""


async def _content(reply: aiohttp.ClientResponse, most: int) -> bytes:
    """The body; one without end costs no more than the limit."""
    packing = reply.headers.get("Content-Encoding", "identity").strip().lower()
    if packing not in ("identity", ""):
        raise MalformedReply(f"a reply packed as {packing[:40]!r}, which was not asked for")
    found = bytearray()
    async for piece in reply.content.iter_any():
        found += piece
        if len(found) > most:
            raise MalformedReply(f"a reply of more than {most // 1_000_000} MB; the rest was not read")
    return bytes(found)


@cache
def _trusted() -> ssl.SSLContext:
    """The machine's certificates, or SSL_CERT_FILE's; where Python finds none, those of certifi."""
    context = ssl.create_default_context()
    folder = ssl.get_default_verify_paths().capath
    if not context.cert_store_stats()["x509_ca"] and not (folder and os.path.isdir(folder)):
        with suppress(ImportError):
            import certifi

            context.load_verify_locations(certifi.where())
    return context


def _proxy_to(address: str) -> str | None:
    """The proxy of the environment, for requests that leave this machine.

    Says so where it can read what is sent in the clear: the key, and the content of turns.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or host in LOOPBACK or host.startswith("127.") or proxy_bypass(host):
        return None
    if parts.scheme == "http":
        where = redacted_url(address)
        _log.warning(
            "requests to %s go through the proxy in HTTP_PROXY, which can read them; "
            "use https, or name the host in NO_PROXY",
            where,
        )
    return proxy if "://" in proxy else f"http://{proxy}"
