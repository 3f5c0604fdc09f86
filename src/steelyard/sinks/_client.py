"""One server of a vendor: kept connections, bounded replies, no redirects, errors by name.

urllib3 keeps the connections; the requests run in daemon threads of this client's own, so that a server that
hangs holds up nobody else and the interpreter does not wait for it at exit. No vendor's client library is
needed, and none could be shared: each brings its own.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3

from steelyard._internal.text import is_http_address, redacted_url
from steelyard._internal.threads import DaemonExecutor, ThreadHangs
from steelyard._internal.typed import json_value
from steelyard.errors import ConfigurationError, SinkError
from steelyard.recording import unrecorded

_CAUSES: Final = {
    401: "unauthorized",
    403: "unauthorized",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    429: "rate_limited",
}
_LARGEST_REPLY: Final = 4 * 1024 * 1024
_MOST_PARTS: Final = 150_000
_PIECE: Final = 64 * 1024
_MAY_PASS = frozenset({"not_found", "rate_limited"})
_FIRST_PAUSE = 0.05  # seconds; doubled each time
_LONGEST_PAUSE = 1.0


class HTTPError(SinkError):
    """A reply that is not a success.

    Attributes:
        retry_after: Seconds the server asked us to wait, or None if it did not say.
    """

    def __init__(self, message: str, *, cause: str, retry_after: float | None = None) -> None:
        super().__init__(message, cause=cause)
        self.retry_after = retry_after


class HTTPClient:
    """Posts JSON to one server, with up to `connections` requests at the same time.

    The key in the headers is for this server only: a redirect is an error, and the proxy of `HTTPS_PROXY` is
    used for https alone, where it sees the host's name and nothing else. No message holds what a server
    replied.
    """

    def __init__(
        self, name: str, url: str, *, headers: Mapping[str, str], timeout: float, connections: int
    ) -> None:
        if not is_http_address(url):
            raise ConfigurationError(
                f"{name}: {redacted_url(url)!r} is not an http(s) URL; write one that begins with https://"
            )
        parts = urlsplit(url)
        if parts.query or parts.fragment:
            raise ConfigurationError(
                f"{name}: {redacted_url(url)!r} must have no query; give a key by its own option"
            )
        self.name = name
        self.address = redacted_url(url).rstrip("/")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        if parts.username is not None and "Authorization" not in headers:
            self._headers |= basic(unquote(parts.username), unquote(parts.password or ""))
        for header, value in self._headers.items():
            if not (value.isascii() and value.isprintable()):
                raise ConfigurationError(
                    f"{name}: the value of {header!r} has characters that no header can hold; "
                    "copy the key again"
                )
        self._path = parts.path.rstrip("/")
        self._timeout = timeout
        self._connections = connections
        self._pid = 0
        self._pool: urllib3.HTTPConnectionPool | None = None
        self._threads = DaemonExecutor(connections, name=f"steelyard-{name}", spares=connections)

    async def request(self, method: str, path: str, payload: object = None) -> Any:
        """One request; the parsed reply, or None where it is not JSON."""
        body = None if payload is None else json.dumps(payload, allow_nan=False).encode()
        pool = self._connected()
        try:
            return await self._threads.run(self._exchange, pool, method, path, body)
        except ThreadHangs as error:
            raise SinkError(str(error), cause="hangs") from None

    def close(self) -> None:
        """Let threads and connections go; a later request makes new ones."""
        if self._pid == os.getpid():
            self._threads.shutdown()
            if self._pool is not None:
                self._pool.close()
        self._pool = None

    def _connected(self) -> urllib3.HTTPConnectionPool:
        """The pool of this process: a forked child must not write into its parent's connections."""
        if self._pid != os.getpid():
            self._pool, self._pid = None, os.getpid()
        if self._pool is None:
            self._pool = self._make_pool()
        return self._pool

    def _make_pool(self) -> urllib3.HTTPConnectionPool:
        options: dict[str, Any] = {"maxsize": self._connections, "timeout": self._timeout, "retries": False}
        parts = urlsplit(self.address)
        proxy = getproxies().get("https") if parts.scheme == "https" else None
        if proxy and parts.hostname and not proxy_bypass(parts.hostname):
            return urllib3.ProxyManager(proxy, **options).connection_from_url(self.address)
        return urllib3.PoolManager(**options).connection_from_url(self.address)

    def _exchange(self, pool: urllib3.HTTPConnectionPool, method: str, path: str, body: bytes | None) -> Any:
        deadline = time.monotonic() + 2 * self._timeout
        try:
            with unrecorded():
                reply = pool.urlopen(
                    method,
                    f"{self._path}{path}",
                    body,
                    self._headers,
                    retries=False,
                    redirect=False,
                    preload_content=False,
                    decode_content=False,
                )
                try:
                    content = self._read(reply, deadline)
                finally:
                    reply.release_conn()
        except urllib3.exceptions.HTTPError as error:
            # A refused connection is a ConnectTimeoutError too, by urllib3's older habits.
            refused = isinstance(error, urllib3.exceptions.NewConnectionError)
            slow = isinstance(error, urllib3.exceptions.TimeoutError) and not refused
            raise HTTPError(
                f"{self.name}: {self.address} cannot be reached: {type(error).__name__}",
                cause="timeout" if slow else "unreachable",
            ) from None
        if not 200 <= reply.status < 300:
            default = "unavailable" if reply.status >= 500 else "rejected"
            raise HTTPError(
                f"{self.name}: HTTP {reply.status} from {method} {path.partition('?')[0]}",
                cause=_CAUSES.get(reply.status, default),
                retry_after=_seconds(reply.headers.get("Retry-After")),
            )
        return _parsed(content)

    def _read(self, reply: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        """The body, up to a limit in bytes and in time; what exceeds it costs the connection."""
        pieces: list[bytes] = []
        size = 0
        while piece := reply.read1(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > _LARGEST_REPLY or time.monotonic() > deadline:
                reply.close()
                return b""
        return b"".join(pieces)


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def _parsed(body: bytes) -> Any:
    # The lists and objects of a reply are made while the application waits for the interpreter.
    if body.count(b"[") + body.count(b"{") > _MOST_PARTS:
        return None
    try:
        return json_value(body)
    except (ValueError, RecursionError):
        return None


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86_400 else None


async def patiently(send: Callable[[], Awaitable[None]], *, patience: float) -> None:
    """Send; where the server does not know the trace yet, or asks for a pause, again until patience is over.

    Host applications export spans in batches, every five seconds by default, so a score may be first. Other
    failures are not tried again here: the Monitor does that, for all sinks alike.
    """
    deadline = time.monotonic() + patience
    growing = _FIRST_PAUSE
    while True:
        try:
            return await send()
        except SinkError as error:
            asked: float | None = getattr(error, "retry_after", None)
            pause = growing if asked is None else asked
            if error.cause not in _MAY_PASS or time.monotonic() + pause >= deadline:
                raise
        await asyncio.sleep(pause)
        growing = min(2 * growing, _LONGEST_PAUSE)
