"""One server of a vendor: kept connections, bounded replies, no redirects, errors by name.

No vendor's client library is needed, and none could be shared: each brings its own.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from steelyard._internal.loops import PerLoop
from steelyard._internal.text import is_http_address, redacted_url
from steelyard._internal.typed import json_value
from steelyard.errors import ConfigurationError, SinkError
from steelyard.recording import unrecorded

if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from steelyard.judge.http import HTTPSender

_CAUSES: Final = {
    401: "unauthorized",
    402: "unauthorized",
    403: "unauthorized",
    404: "not_found",
    405: "not_an_api",
    407: "unauthorized",
    408: "timeout",
    409: "conflict",
    429: "rate_limited",
}
_LARGEST_REPLY: Final = 4 * 1024 * 1024
_MOST_PARTS: Final = 150_000
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
        self._timeout = timeout
        self._connections = connections
        self._senders = PerLoop(self._open)

    def _open(self) -> HTTPSender:
        # Imported where it is needed: it takes a quarter of a second.
        from steelyard.judge.http import HTTPSender

        return HTTPSender(self.address, self._headers, connections=self._connections, clear_proxy=False)

    async def aclose(self) -> None:
        """Let connections go; a later request makes new ones."""
        if (sender := self._senders.pop()) is not None:
            await sender.aclose()

    async def request(self, method: str, path: str, payload: object = None) -> Any:
        """One request; the parsed reply, or None where it is not JSON."""
        data = None if payload is None else json.dumps(payload, allow_nan=False).encode()
        kind = cause = ""
        try:
            with unrecorded():
                async with (
                    asyncio.timeout(self._timeout) as limit,
                    self._senders.here().request(method, path, data) as reply,
                ):
                    limit.reschedule(None)
                    content = await self._read(reply)
        except Exception as error:  # noqa: BLE001 - whatever it is of the library's
            kind, cause = (
                type(error).__name__,
                "timeout" if isinstance(error, TimeoutError) else "unreachable",
            )
        # Here, since the library's error, which may quote a reply, would go along as the context of ours.
        if kind:
            raise HTTPError(f"{self.name}: {self.address} cannot be reached: {kind}", cause=cause)
        if cause := _problem(reply.status, _is_page(reply.headers.get("Content-Type", ""), content)):
            raise HTTPError(
                f"{self.name}: HTTP {reply.status} from {method} {path.partition('?')[0]}",
                cause=cause,
                retry_after=_seconds(reply.headers.get("Retry-After")),
            )
        return _parsed(content)

    async def _read(self, reply: ClientResponse) -> bytes:
        """The body, up to a limit in bytes and in time; what exceeds it costs the connection."""
        found = bytearray()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                async for piece in reply.content.iter_any():
                    found += piece
                    if len(found) > _LARGEST_REPLY:
                        return b""
                return bytes(found)
        return b""


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def _problem(status: int, is_page: bool) -> str:
    """Why a reply means that nothing was taken; empty if it was.

    A page where an API should answer is a log-in, or a wrong address: it concerns all that is sent there.
    """
    if is_page and (status < 300 or status == 404):
        return "not_an_api"
    if status < 300:
        return ""
    default = "redirected" if status < 400 else "rejected" if status < 500 else "unavailable"
    return _CAUSES.get(status, default)


def _is_page(kind: str, content: bytes) -> bool:
    return "html" in kind.lower() or content[:64].lstrip().startswith(b"<")


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
