"""The HTTP side of the endpoint: OTLP over HTTP in protobuf or JSON, as the specification asks for it."""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Collection
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from steelyard._internal.text import LOOPBACK, error_words
from steelyard._internal.threads import DaemonExecutor
from steelyard.collect._collector import ReadExport, Signal, SpanReader
from steelyard.collect._journal import JournalFull
from steelyard.errors import ConfigurationError, InvalidRecord, MissingDependency

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp


_GZIP = 16 + zlib.MAX_WBITS
_SHORTEST_TOKEN: Final = 16
_JSON: Final = "application/json"
_SESSION: Final = "x-session-id"
"""The header of a request whose spans are all of one conversation."""
_PROTOBUF: Final = "application/x-protobuf"
# Larger bodies are parsed in a thread, so that other requests do not wait for them.
_IN_LOOP: Final = 128 * 1024
_SECONDS_FOR_A_BODY: Final = 30.0  # a sender that drips bytes must not be waited for for ever
_SECONDS_FOR_A_PIECE: Final = 5.0
_CONNECTIONS: Final = 32
"""Requests that may be under way for each one whose body may be in memory: a half-sent body is small."""


class _Refused(Exception):
    """A request that is not taken: the cause it is counted by, the status, and what to say."""

    def __init__(self, cause: str, status: int, message: str) -> None:
        super().__init__(message)
        self.cause = cause
        self.status = status


def _too_large(longest: int) -> _Refused:
    limit = f"{longest >> 20} MiB" if longest >> 20 else f"{longest} bytes"
    return _Refused("too_large", 413, f"the body has more than {limit}")


async def _read_body(chunks: AsyncIterator[bytes], *, encoding: str, longest: int) -> bytes:
    """The whole body, unpacked."""
    named = encoding.strip().lower()
    if named not in ("", "identity", "gzip", "deflate"):
        problem = f"the encoding {named[:40]!r} is not understood; send gzip, deflate or nothing"
        raise _Refused("encoding", 400, problem)
    inflate = None
    if named in ("gzip", "deflate"):
        inflate = zlib.decompressobj(_GZIP if named == "gzip" else zlib.MAX_WBITS)
    body = bytearray()
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        body += chunk if inflate is None else _unpacked(inflate, chunk, longest + 1 - len(body))
        if received > longest or len(body) > longest:
            raise _too_large(longest)
    if inflate is not None and not inflate.eof:
        raise _Refused("encoding", 400, "the compressed body was cut short")
    return bytes(body)


def _unpacked(inflate: zlib._Decompress, chunk: bytes, most: int) -> bytes:
    # zlib would keep what follows the end, in a longer and longer copy.
    if inflate.eof and chunk:
        raise _Refused("encoding", 400, "bytes follow the end of the compressed body")
    try:
        found = inflate.decompress(chunk, most)
    except zlib.error:
        raise _Refused("encoding", 400, "the body is not compressed as its headers say") from None
    if inflate.unused_data:
        raise _Refused("encoding", 400, "bytes follow the end of the compressed body")
    return found


class Receiver(Protocol):
    """Takes what the endpoint has read; a `Collector` is one."""

    @property
    def reader(self) -> SpanReader[Any]:
        """Reads requests and answers them."""

    @property
    def counts(self) -> DataclassInstance:
        """What became of everything so far."""

    async def store(self, export: ReadExport, *, signal: Signal) -> None:
        """Return when the spans, or the log records, of a request are safe; raises what a Collector does."""

    def refuse(self, cause: str) -> None:
        """Count a request that was not taken."""


def app(
    collector: Receiver,
    *,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    max_body: int = 16 * 1024**2,
    max_requests: int = 32,
    retry_after: int = 5,
) -> ASGIApp:
    """An ASGI application to be served or mounted: `POST /v1/traces`, `POST /v1/logs` and `GET /healthz`.

    Args:
        collector: Where spans and log records go; started and closed by the caller.
        token: What senders must give as `Authorization: Bearer ...`, 16 characters at least. None: whoever
            can reach the server may send, so serve it on 127.0.0.1 only.
        hosts: Names this server goes by; requests for other names are refused. None: those of this machine
            itself, and any name if a token is needed.
        max_body: The most bytes of a request, before and after unpacking.
        max_requests: How many requests of the largest size may be in memory at once. Of smaller ones there
            may be 32 times as many, half of them from one address.
        retry_after: Seconds that senders are asked to wait if there is no room.

    Raises:
        ConfigurationError: If the token is too short.
        MissingDependency: If Starlette is not installed.
    """
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise ConfigurationError(f"the token must have at least {_SHORTEST_TOKEN} characters")
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ModuleNotFoundError:
        raise MissingDependency("starlette", extra="collect") from None
    known = (() if token else LOOPBACK) if hosts is None else tuple(hosts)
    endpoint = _Endpoint(
        collector=collector,
        token=token,
        hosts=frozenset(name.lower() for name in known),
        max_body=max_body,
        max_requests=max_requests,
        retry_after=retry_after,
    )
    return Starlette(
        routes=[
            Route("/v1/traces", endpoint.traces, methods=["POST"]),
            Route("/v1/logs", endpoint.logs, methods=["POST"]),
            Route("/healthz", endpoint.health, methods=["GET"]),
        ]
    )


@dataclass(kw_only=True)
class _Endpoint:
    collector: Receiver
    token: str | None
    hosts: frozenset[str]
    max_body: int
    max_requests: int
    retry_after: int
    under_way: Counter[str] = field(default_factory=Counter)
    held: int = 0

    def __post_init__(self) -> None:
        # One thread: parsing holds the interpreter, so that more of them would not be faster.
        self._executor = DaemonExecutor(1, name="steelyard-otlp")

    async def traces(self, request: Request) -> Response:
        """`POST /v1/traces`."""
        return await self._post(request, "traces")

    async def logs(self, request: Request) -> Response:
        """`POST /v1/logs`: content that belongs to spans; other log records are taken, and not kept."""
        return await self._post(request, "logs")

    async def _post(self, request: Request, signal: Signal) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_json = kind != _PROTOBUF
        try:
            # Before anything is read: a stranger's body is not worth a byte of memory.
            self._check_sender(request)
            if kind not in (_JSON, _PROTOBUF):
                raise _Refused("content_type", 415, f"send {_PROTOBUF} or {_JSON}")
            return await self._take(request, signal, is_json=is_json)
        except _Refused as refused:
            return self._refuse(refused, is_json=is_json)

    async def health(self, request: Request) -> Response:
        """`GET /healthz`: counts, no content."""
        from starlette.responses import Response

        try:
            self._check_sender(request)
        except _Refused as refused:
            return self._refuse(refused, is_json=True)
        return Response(json.dumps(asdict(self.collector.counts)), media_type=_JSON)

    async def _take(self, request: Request, signal: Signal, *, is_json: bool) -> Response:
        peer = request.client.host if request.client else ""
        most = self.max_requests * _CONNECTIONS
        if self.under_way.total() >= most or self.under_way[peer] >= max(most // 2, 1):
            raise _Refused("busy", 429, "too many requests at once")
        self.under_way[peer] += 1
        sizes: list[int] = []
        try:
            export = await self._stored(request, signal, sizes, is_json=is_json)
        finally:
            self.held -= sum(sizes)
            self.under_way[peer] -= 1
            self.under_way += Counter()  # forgets addresses of which nothing is left
        return _response(200, self.collector.reader.success(export, is_json=is_json), is_json=is_json)

    async def _stored(
        self, request: Request, signal: Signal, sizes: list[int], *, is_json: bool
    ) -> ReadExport:
        """Read a request that is let in, and have it stored; `sizes` are its bytes that are in memory."""
        from starlette.requests import ClientDisconnect

        if int(request.headers.get("content-length") or 0) > self.max_body:
            raise _too_large(self.max_body)
        encoding = request.headers.get("content-encoding", "")
        session = request.headers.get(_SESSION, "").strip()
        try:
            async with asyncio.timeout(_SECONDS_FOR_A_BODY):
                pieces = self._pieces(request.stream(), sizes)
                body = await _read_body(pieces, encoding=encoding, longest=self.max_body)
            read = partial(self.collector.reader.read, body, is_json=is_json, signal=signal, session=session)
            export: ReadExport = await self._executor.run(read) if len(body) > _IN_LOOP else read()
            await self.collector.store(export, signal=signal)
        except InvalidRecord as error:
            raise _Refused("unreadable", 400, str(error)) from None
        except TimeoutError:
            raise _Refused("timeout", 408, "the body took too long") from None
        except ClientDisconnect:  # nobody hears the answer
            raise _Refused("cut_off", 400, "the body was cut off") from None
        except JournalFull:
            raise _Refused("full", 503, "there is no room now; come back later") from None
        except sqlite3.Error as error:
            problem = f"the {signal} cannot be stored: {error_words(error)}"
            raise _Refused("not_stored", 503, problem) from None
        return export

    async def _pieces(self, stream: AsyncIterator[bytes], sizes: list[int]) -> AsyncIterator[bytes]:
        """The pieces of a body, each within seconds of the one before."""
        while True:
            async with asyncio.timeout(_SECONDS_FOR_A_PIECE):
                piece = await anext(stream, None)
            if piece is None:
                return
            if self.held + len(piece) > self.max_requests * self.max_body:
                raise _Refused("busy", 429, "too many bytes at once")
            self.held += len(piece)
            sizes.append(len(piece))
            yield piece

    def _check_sender(self, request: Request) -> None:
        """Refuse who may not send."""
        # Against DNS rebinding: a web page can have this machine asked under its own name.
        if self.hosts:
            try:
                name = urlsplit(f"//{request.headers.get('host', '')}").hostname
            except ValueError:
                name = None
            if name not in self.hosts:
                raise _Refused("host", 421, "this server does not go by that name")
        if self.token is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # In constant time, so that how long it takes does not tell how much was right.
        known = secrets.compare_digest(given.strip().encode(errors="replace"), self.token.encode())
        if not (known and scheme.lower() == "bearer"):
            raise _Refused("token", 401, "a token is needed")

    def _refuse(self, refused: _Refused, *, is_json: bool) -> Response:
        self.collector.refuse(refused.cause)
        # These alone are sent again by exporters; the others would fail for ever.
        passes = refused.status in (429, 503)
        body = self.collector.reader.failure(str(refused), is_json=is_json, passes=passes)
        made = _response(refused.status, body, is_json=is_json)
        if passes:
            made.headers["retry-after"] = str(self.retry_after)
        return made


def _response(status: int, body: bytes, *, is_json: bool) -> Response:
    from starlette.responses import Response

    return Response(body, status_code=status, media_type=_JSON if is_json else _PROTOBUF)
