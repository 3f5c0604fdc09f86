"""Requests through the openai package: one client per event loop, no retries of its own, named errors.

Where a key goes: without `base_url`, to wherever the openai package itself would go (OPENAI_BASE_URL, or
OpenAI), with the key given or OPENAI_API_KEY. With `base_url`, only a key that was passed along with it is
sent; the key, the organisation and the headers in the environment were meant for somebody else and stay
there.

Messages name a server by its address without user, password and query, and hold its own words only as far as
they are not secrets; replies are read up to a limit (`_bounded`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from steelyard._internal.json_pieces import json_value
from steelyard._internal.logs import SafeLogger
from steelyard._internal.loopback import LOOPBACK
from steelyard._internal.redact import error_words, redacted, redacted_url
from steelyard.errors import (
    ConfigurationError,
    JudgeError,
    JudgeRejected,
    JudgeUnavailable,
    MalformedReply,
    MissingDependency,
    RateLimited,
    SteelyardError,
)
from steelyard.judge._bounded import bound_reply
from steelyard.scores import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI


_log = SafeLogger("steelyard.judge")
# The openai package insists on a key, also for servers that need none.
_NO_KEY = "none"
_MOST_PARTS = 150_000
"""Lists and objects in a reply; one of 12,000 tokens with their log probabilities has fewer."""
_MOST_ESCAPES = 400_000
"""Backslashes in a reply. They may all stand in one text, which is read by one call."""
_IN_QUERY = "!$%&'()*+,-./:;=?@_~"
_MOST_COUNTED = 2**53  # beyond, a float no longer counts by ones; a server that says so is wrong
_FOREIGN_HEADERS = ("OpenAI-Organization", "OpenAI-Project")


@dataclass(eq=False, slots=True)
class _Pool:
    """One client in one event loop, and how many endpoints hold it."""

    client: AsyncOpenAI
    slots: asyncio.Semaphore
    holders: int = 0


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, _Pool]] = WeakKeyDictionary()


class Endpoint:
    """An OpenAI-compatible server, and how to reach it from whatever event loop is running.

    Endpoints of the same server, key and number of connections share a client, so that a judge and an
    embedder on one server do not open twice as many connections.
    """

    def __init__(
        self,
        *,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        connections: int,
        client: AsyncOpenAI | None = None,
    ) -> None:
        if timeout <= 0:
            raise ConfigurationError(f"timeout must be positive, not {timeout!r}")
        if base_url is not None and not base_url.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"base_url must begin with http:// or https://, not {redacted_url(base_url)!r}"
            )
        if client is None and base_url is None and not (api_key or os.environ.get("OPENAI_API_KEY")):
            raise ConfigurationError(
                "no key for the judge: set OPENAI_API_KEY, pass api_key=, or name a server with base_url="
            )
        self.base_url = base_url
        self.timeout = timeout
        self._api_key = api_key
        self._connections = connections
        self._given = client
        # By loop: connections do not survive a change of it, and a notebook has a new one for each call.
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()

    @property
    def where(self) -> str:
        """The server, for messages: without user, password and query."""
        return redacted_url(self.base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1")

    def _shown(self, words: str) -> str:
        """Somebody's words without the keys and passwords that this endpoint knows."""
        known = [self._api_key, os.environ.get("OPENAI_API_KEY"), *_credentials(self.base_url)]
        if self._given is not None:
            known.append(self._given.api_key)
        return redacted(words, secrets=filter(None, known))

    def _pool(self) -> _Pool:
        """The pool of the running event loop; connections do not survive a change of loop."""
        loop = asyncio.get_running_loop()
        pool = self._held.get(loop)
        if pool is None:
            # Another thread may add its loop meanwhile; then whoever comes next clears up.
            with contextlib.suppress(RuntimeError):
                for other in [other for other in _pools if other.is_closed()]:
                    _pools.pop(other, None)
            pools = _pools.setdefault(loop, {})
            pool = pools.get(self._identity)
            if pool is None:
                pool = pools[self._identity] = _Pool(self._open(), asyncio.Semaphore(self._connections))
            pool.holders += 1
            self._held[loop] = pool
        return pool

    @property
    def _identity(self) -> Hashable:
        return self.base_url, self._api_key, self._connections, self._given and id(self._given)

    def _open(self) -> AsyncOpenAI:
        if self._given is not None:
            return self._given
        try:
            import openai
        except ImportError as error:
            raise MissingDependency("openai", extra="all") from error
        # The HTTP library under openai changed its name; its own constant knows the class.
        limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
            max_connections=self._connections, max_keepalive_connections=self._connections
        )
        # The timeout is ours, over the whole request. A redirect would carry content to where nobody pointed
        # us.
        # The HTTP library logs addresses with all that is in them: password and query go another way.
        address, login, query = _taken_apart(self.base_url or os.environ.get("OPENAI_BASE_URL"))
        http = openai.DefaultAsyncHttpxClient(
            limits=limits,
            timeout=None,
            follow_redirects=False,
            event_hooks={"request": [_with_query(query)] if query else [], "response": [bound_reply]},
            auth=login,
            trust_env=not _stays_here(address),
        )
        # What `bound_reply` can count while it is unpacked; brotli and zstd it could not.
        headers: dict[str, Any] = {"Accept-Encoding": "gzip, deflate"}
        key = self._api_key
        if self.base_url is not None:
            key = key or _NO_KEY
            headers = headers | dict.fromkeys((*_FOREIGN_HEADERS, *_environment_headers()), openai.Omit())
        return openai.AsyncOpenAI(
            api_key=key,
            base_url=address,
            timeout=None,
            max_retries=0,
            default_headers=headers,
            http_client=http,
        )

    async def call(self, send: Callable[[AsyncOpenAI], Awaitable[Any]]) -> Any:
        """Send a request through the client, within the timeout as a whole.

        Raises:
            JudgeError: For whatever went wrong, by name.
        """
        pool = self._pool()
        try:
            # The wait for a place does not count as part of the request, whose seconds begin inside.
            async with pool.slots, asyncio.timeout(self.timeout):
                return await send(pool.client)
        except TimeoutError as error:
            raise self._timed_out() from error
        # Of our own reading of the reply: it has its name already.
        except SteelyardError:
            raise
        except Exception as error:
            raise self._named(error) from error

    async def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a JSON object, and read the one that is the reply.

        It goes through the client's general `post`: methods such as `chat.completions.create` convert what
        they are given by its type hints, which takes as long as the rest of the request.

        Raises:
            JudgeError: For whatever went wrong, by name.
        """
        reply = await self.call(lambda client: client.post(path, cast_to=_raw_reply(), body=body))
        return body_of(reply.content)

    def _timed_out(self) -> JudgeUnavailable:
        return JudgeUnavailable(f"no reply from {self.where} within {self.timeout:g} s", cause="timeout")

    def _named(self, error: Exception) -> JudgeError:
        import openai

        if isinstance(error.__cause__, JudgeError):
            return error.__cause__  # of the bounded reading, wrapped by openai
        if isinstance(error, openai.APITimeoutError):
            return self._timed_out()
        if isinstance(error, openai.APIConnectionError):
            reason = self._shown(_reason(error))
            return JudgeUnavailable(f"cannot reach {self.where}: {reason}", cause="unreachable")
        if isinstance(error, openai.APIStatusError):
            return named_error(
                error.status_code,
                self._shown(error.message),
                code=error.code,
                headers=error.response.headers,
                where=self.where,
            )
        if isinstance(error, openai.OpenAIError | ValueError):
            return MalformedReply(f"{self.where} sent something that is not a reply: {type(error).__name__}")
        return JudgeUnavailable(f"{self.where}: {error_words(error)}", cause="unreachable")

    async def aclose(self) -> None:
        """Let go of the running loop's client; the last to do so closes it, unless it was brought along."""
        loop = asyncio.get_running_loop()
        pool = self._held.pop(loop, None)
        if pool is None:
            return
        pool.holders -= 1
        if not pool.holders:
            _pools[loop].pop(self._identity, None)
            if self._given is None:
                await pool.client.close()

    def __repr__(self) -> str:
        return f"Endpoint({self.where!r})"


def _raw_reply() -> Any:
    """The class that openai gives back unread."""
    import openai

    return openai.HttpxBinaryResponseContent


def _taken_apart(address: str | None) -> tuple[str | None, tuple[str, str] | None, str]:
    """An address without user, password and query, then user and password, then the query."""
    try:
        parts = urlsplit(address or "")
    except ValueError:
        return address, None, ""
    if not address:
        return address, None, ""
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
    known = parts.username is not None
    login = (unquote(parts.username or ""), unquote(parts.password or "")) if known else None
    return plain, login, parts.query


def _stays_here(address: str | None) -> bool:
    """Whether requests stay on this machine, so that no proxy of the environment gets them.

    Says so where a proxy can read what is sent in the clear: the key, and the content of turns.
    """
    parts = urlsplit(address or "")
    if parts.scheme != "http":
        return False
    host = parts.hostname or ""
    if host in LOOPBACK or host.startswith("127."):
        return True
    if "http" in getproxies() and not proxy_bypass(host):
        _log.warning("requests to %s go through the proxy in HTTP_PROXY, which can read them", address)
    return False


def _with_query(query: str) -> Callable[[Any], Awaitable[None]]:
    """A request hook that sends the query of an address, such as `?api-version=1`, along with each request.

    It stands in the target on the wire and not in the request's URL, which is logged and recorded.
    """

    async def send_along(request: Any) -> None:
        path: bytes = request.url.raw_path
        target = path + (b"&" if b"?" in path else b"?") + quote(query, safe=_IN_QUERY).encode("ascii")
        request.extensions = {**request.extensions, "target": target}

    return send_along


def _credentials(base_url: str | None) -> list[str]:
    """What of an address is nobody's business: user, password, and the values of its query."""
    try:
        parts = urlsplit(base_url or "")
        values = [value for _, value in parse_qsl(parts.query)]
        return [text for text in (parts.username, parts.password, *values) if text]
    except ValueError:
        return []


def _environment_headers() -> list[str]:
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    return [line.partition(":")[0].strip() for line in lines if ":" in line]


def _reason(error: Exception) -> str:
    return str(error.__cause__ or error) or type(error.__cause__ or error).__name__


def named_error(
    status: int, message: str, *, code: str | None, headers: Mapping[str, str], where: str
) -> JudgeError:
    """The error that an HTTP status stands for."""
    # Cut: some servers reply with a whole page.
    text = f"{where} replied {status}: {message[:300]}"
    if status == 429:
        if code == "insufficient_quota":
            return JudgeRejected(text, cause="quota_exceeded")
        return RateLimited(text, retry_after=_retry_after(headers))
    if status in (401, 403):
        return JudgeRejected(f"{text}; check the key", cause="unauthorized")
    if status == 404 or code == "model_not_found":
        return JudgeRejected(f"{text}; check the model's name and base_url", cause="unknown_model")
    if status == 413 or code == "context_length_exceeded":
        return JudgeRejected(text, cause="too_large")
    if 300 <= status < 400:
        return JudgeRejected(f"{text}; redirects are not followed, name the new base_url", cause="redirected")
    # The server did not wait for the request; it may do so the next time.
    if status == 408:
        return JudgeUnavailable(text, cause="timeout")
    if status >= 500 or status in (409, 425):
        error = JudgeUnavailable(text, cause="server_error")
        error.retry_after = _retry_after(headers)
        return error
    return JudgeRejected(text, cause="bad_request")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` in either of its forms."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return _until(headers.get("retry-after"))


def _until(date: str | None) -> float | None:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    if not date:
        return None
    try:
        return max(0.0, (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def body_of(content: bytes) -> Mapping[str, Any]:
    """The JSON object of a reply.

    Raises:
        MalformedReply: If it is something else, or of more parts than any reply has: reading it would take
            seconds, and the application's threads would feel it.
    """
    # Counted before reading, since reading is what takes the time.
    if content.count(b"[") + content.count(b"{") > _MOST_PARTS:
        raise MalformedReply(f"a reply of more than {_MOST_PARTS:,} lists and objects; it was not read")
    if content.count(b"\\") > _MOST_ESCAPES:
        raise MalformedReply(f"a reply of more than {_MOST_ESCAPES:,} escaped characters; it was not read")
    try:
        body = json_value(content)
    except (ValueError, RecursionError) as error:
        raise MalformedReply("the server's reply is not JSON") from error
    if not isinstance(body, dict):
        raise MalformedReply("the server's reply is not a JSON object")
    return body


def usage_of(body: Mapping[str, Any], *, requests: int = 0, seconds: float = 0.0) -> Usage:
    """What the server counted, under either of the names in use; zeros where it counts nothing."""
    usage = _object(body.get("usage"))
    details = _object(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    return Usage(
        requests=requests,
        prompt_tokens=_count(usage.get("prompt_tokens", usage.get("input_tokens"))),
        completion_tokens=_count(usage.get("completion_tokens", usage.get("output_tokens"))),
        cached_tokens=_count(details.get("cached_tokens")),
        seconds=seconds,
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_COUNTED
    return int(value) if known else 0
