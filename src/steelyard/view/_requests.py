"""Requests: what an address asks for, and who may ask, which is checked before any page is made.

A page in another tab can send requests to 127.0.0.1, and a name that its owner points there ("DNS rebinding")
lets it read the replies. So the `Host` header must name this server, a change needs a token from its own
pages and an `Origin` that is its own, and an open address needs the user's token.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steelyard.errors import ConfigurationError
from steelyard.report.period import moment
from steelyard.results.queries import CHOSEN, STATUSES, TurnFilter

LONGEST: Final = 1_000
"""Characters of a value in an address, as many as a tag has at most."""
_MOST: Final = 20
"""Values of one name."""
_OWN: Final = "in."
"""Stands before the name of a field of one's own."""
_RANGES: Final = (("24h", "24 hours"), ("7d", "7 days"), ("30d", "30 days"), ("", "All"))
"""Lengths of time to choose from."""

Pairs = Sequence[tuple[str, str]]
"""The parameters of an address, in order; a name may come several times."""


class AskedWrongly(ConfigurationError):
    """An address asks for what cannot be."""


def pairs_of(request: Request) -> Pairs:
    """The parameters, cut to size, without empty ones."""
    given = request.query_params.multi_items()
    return [(name[:LONGEST], value[:LONGEST]) for name, value in given if value][: 10 * _MOST]


def filter_of(request: Request) -> TurnFilter:
    """Which turns an address asks for."""
    pairs = pairs_of(request)
    values: dict[str, Any] = {name: _chosen(pairs, name) for name in CHOSEN}
    for name in ("text", "trace"):
        values[name] = dict(pairs).get(name, "")
    since, until = times_of(dict(pairs))
    where = [(name.removeprefix(_OWN), value) for name, value in pairs if name.startswith(_OWN)]
    if any('"' in name for name, _ in where):
        raise AskedWrongly("the name of a metadata field holds no quotation mark here")
    return TurnFilter(
        **values, where=tuple(where[:_MOST]), noted="noted" in dict(pairs), since=since, until=until
    )


def _chosen(pairs: Pairs, field: str) -> str | tuple[str, ...]:
    chosen = tuple(dict.fromkeys(value for name, value in pairs if name == field))[:_MOST]
    if field == "status":  # conditions are chosen by it
        chosen = tuple(one for one in chosen if one in STATUSES)
    return chosen[0] if len(chosen) == 1 else chosen


def times_of(asked: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Since when and until when."""
    # To the minute, so that what was found a moment ago is found again.
    now = time.time() // 60 * 60
    try:
        since, until = (moment(asked.get(name, ""), now=now) for name in ("since", "until"))
    except ConfigurationError as error:
        raise AskedWrongly(str(error)) from None
    return since, until


def parameter_of(name: str) -> str:
    """How a facet is named in an address."""
    return name if name in (*CHOSEN, "noted") else f"{_OWN}{name}"


def of_metric(name: str) -> Pairs:
    """The parameters of a metric's turns, the worst first; none of a name too long for an address."""
    sort = f"metric:{name}"
    return [("metric", name), ("sort", sort)] if len(sort) <= LONGEST else []


def changed(pairs: Pairs, *, drop: Iterable[str] = (), **values: str) -> str:
    """The query of an address with some parameters left out, and others set; empty ones are left out."""
    left = {*drop, *values}
    kept = [pair for pair in pairs if pair[0] not in left]
    return urlencode([*kept, *((name, value) for name, value in values.items() if value)])


def toggled(pairs: Pairs, name: str, value: str) -> str:
    """The query of an address with a value more, or without one that was there."""
    pair = (name, value)
    left = [one for one in pairs if one != pair]
    return urlencode(left if len(left) < len(pairs) else [*pairs, pair])


def ranges(pairs: Pairs) -> list[tuple[str, str, bool]]:
    """Lengths of time: name, address, and whether it is the one that is asked for."""
    asked = dict(pairs)
    return [
        (
            name,
            changed(pairs, drop=("until",), since=length),
            (asked.get("since", ""), "until" in asked) == (length, False),
        )
        for length, name in _RANGES
    ]


def in_address(at: float) -> str:
    """A Unix time as an address has it, to the second in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}"


_COOKIE = "steelyard_session"
_SHORTEST_TOKEN = 16
_SECONDS_FOR_A_BODY = 30.0
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Middleware that answers itself what must not reach a page, and sets the security headers."""

    def __init__(self, inner: ASGIApp, *, token: str | None, hosts: Collection[str], csrf: str) -> None:
        # A short token is found by trying.
        if token is not None and len(token) < _SHORTEST_TOKEN:
            raise ConfigurationError(f"the token must have at least {_SHORTEST_TOKEN} characters")
        self._inner, self._csrf = inner, csrf
        self._token = token
        self._hosts = frozenset(host.lower() for host in hosts)
        self._session = (
            hmac.new(token.encode(), b"steelyard session", hashlib.sha256).hexdigest() if token else None
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    # A page's own headers come first: static files may be kept by the browser.
                    headers.setdefault(name, value)
            await send(message)

        answer = await self._answer(Request(scope, receive))
        await (answer or self._inner)(scope, receive, send_guarded)

    async def _answer(self, request: Request) -> Response | None:
        """The reply that ends a request here; None where it may pass."""
        if not self._is_known_host(request.headers):
            return PlainTextResponse("this server does not go by that name", status_code=421)
        changes = request.method not in ("GET", "HEAD")
        if changes and not _is_own_origin(request.headers):
            return PlainTextResponse("this request comes from another site", status_code=403)
        root = request.scope.get("root_path", "")
        path = request.url.path.removeprefix(root)
        if path == "/login":
            return await self._log_in(request) if request.method == "POST" else None
        # Styles and scripts hold nothing of anybody's, and the login page needs them.
        if path.startswith("/static/"):
            return None
        if not self._is_known_user(request):
            # A program cannot fill in the form, and what was to be changed would be lost on the way there.
            refused = PlainTextResponse("a token is needed", status_code=401)
            is_page = not changes and not path.startswith("/api/")
            return RedirectResponse(f"{root}/login", status_code=303) if is_page else refused
        if changes and not _same(request.headers.get("x-csrf-token", ""), self._csrf):
            return PlainTextResponse("the page is out of date; load it again", status_code=403)
        return None

    def _is_known_host(self, headers: Headers) -> bool:
        if not self._hosts:
            return True
        try:
            name = urlsplit(f"//{headers.get('host', '')}").hostname
        except ValueError:
            return False
        return name in self._hosts

    def _is_known_user(self, request: HTTPConnection) -> bool:
        if self._session is None or self._token is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(given, self._token):
            return True
        return _same(request.cookies.get(_COOKIE, ""), self._session)

    async def _log_in(self, request: Request) -> Response:
        body = await read_body(request, 4_096)
        given = parse_qs((body or b"").decode(errors="replace")).get("token", [""])[0]
        if self._token is None or self._session is None or not _same(given, self._token):
            return PlainTextResponse("this is not the token", status_code=401)
        answer = RedirectResponse(f"{request.scope.get('root_path', '')}/", status_code=303)
        # Over plain HTTP a browser would not send a secure cookie back.
        secure = request.url.scheme == "https"
        answer.set_cookie(_COOKIE, self._session, httponly=True, samesite="lax", secure=secure, path="/")
        return answer


async def read_body(request: Request, longest: int) -> bytes | None:
    """The body of a request; None if it is longer than that many bytes, or takes too long to come."""
    body = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_FOR_A_BODY):
            async for chunk in request.stream():
                body += chunk
                # While it is read, for a length that was announced may be a lie.
                if len(body) > longest:
                    return None
            return body
    return None


def _same(given: str, wanted: str) -> bool:
    """Whether two texts are the same, in a time that does not tell where they differ."""
    return secrets.compare_digest(given.encode(errors="replace"), wanted.encode())


def _is_own_origin(headers: Headers) -> bool:
    """A browser says where a change comes from; other clients say nothing and hold no cookies of ours."""
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")
