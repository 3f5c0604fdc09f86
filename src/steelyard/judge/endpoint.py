"""A server that speaks OpenAI's language: where it is, what it is sent, and within which bounds.

Where a key goes: without `base_url`, to OPENAI_BASE_URL or OpenAI, with the key given or OPENAI_API_KEY, and
with the organisation, project and headers of the environment. With `base_url`, only a key that was passed
along with it is sent; what is in the environment was meant for somebody else and stays there.

Messages name a server by its address without user, password and query, and hold its own words only as far as
they are not secrets.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import parse_qsl, urlsplit

from steelyard._internal.loops import PerLoop, PerLoopSemaphore
from steelyard._internal.text import error_words, redacted, redacted_url
from steelyard._internal.typed import json_value
from steelyard.errors import (
    ConfigurationError,
    JudgeError,
    JudgeRejected,
    JudgeUnavailable,
    MalformedReply,
    RateLimited,
    SteelyardError,
)
from steelyard.scores import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI


_MOST_PARTS = 150_000
"""Lists and objects in a reply; one of 12,000 tokens with their log probabilities has fewer."""
_MOST_KEYS = 300_000
"""Keys in a reply; those 12,000 tokens have 230,000."""
_MOST_ESCAPES = 400_000
"""Backslashes in a reply. They may all stand in one text, which is read by one call."""
_LONGEST_REFUSAL = 20_000
"""Bytes of an error page that are looked at; what is shown of it is shorter."""
_MOST_COUNTED = 2**53  # beyond, a float no longer counts by ones; a server that says so is wrong


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
    try:
        until = parsedate_to_datetime(headers["retry-after"])
        return max(0.0, (until - datetime.now(UTC)).total_seconds())
    except (KeyError, ValueError, TypeError):
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
    if content.count(b":") > _MOST_KEYS:
        raise MalformedReply(f"a reply of more than {_MOST_KEYS:,} keys; it was not read")
    if content.count(b"\\") > _MOST_ESCAPES:
        raise MalformedReply(f"a reply of more than {_MOST_ESCAPES:,} escaped characters; it was not read")
    try:
        body = json_value(content)
    except (ValueError, RecursionError) as error:
        raise MalformedReply("the server's reply is not JSON") from error
    if not isinstance(body, dict):
        raise MalformedReply("the server's reply is not a JSON object")
    return body


def refusal_in(content: bytes) -> tuple[str, str | None]:
    """A server's words about what is wrong, and its code for that, if it has one."""
    try:
        body = json_value(content[:_LONGEST_REFUSAL])
    except (ValueError, RecursionError):
        return content[:_LONGEST_REFUSAL].decode(errors="replace").strip(), None
    error = _object(body).get("error", body)
    code = _object(error).get("code")
    return str(error), code if isinstance(code, str) else None


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


_OPENAI = "https://api.openai.com/v1"
# Some servers want to see a key, and take any.
_NO_KEY = "none"
_AT_ONCE = 100_000
"""Bytes of a reply that are read in the loop; more are read beside it."""
_FROM_ENVIRONMENT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}


@dataclass(frozen=True, slots=True, repr=False)
class HTTPReply:
    """What a server replied."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str]
    """Names are found in any case."""
    content: bytes
    """The body, unpacked."""


@runtime_checkable
class Sender(Protocol):
    """Brings requests to a server. It is used in one event loop."""

    async def exchange(self, path: str, body: Mapping[str, Any]) -> HTTPReply:
        """Post a JSON object; what cannot be sent or read may raise anything."""
        ...

    async def aclose(self) -> None:
        """Let go of the connections."""
        ...


class _BroughtClient:
    """Sends what a client of the openai package would send; its errors become replies again, to be named."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client

    async def exchange(self, path: str, body: Mapping[str, Any]) -> HTTPReply:
        """Post through the client's general method: `chat.completions.create` converts by type hints."""
        import openai

        try:
            reply = await self._client.post(path, cast_to=openai.HttpxBinaryResponseContent, body=body)
        except openai.APIStatusError as error:
            return HTTPReply(error.status_code, error.response.headers, error.response.content)
        except openai.APITimeoutError as error:
            raise TimeoutError from error
        except openai.APIConnectionError as error:
            raise error.__cause__ or error from None
        return HTTPReply(reply.response.status_code, reply.response.headers, reply.content)

    async def aclose(self) -> None:
        """Nothing: the client belongs to whoever made it."""


class Endpoint:
    """An OpenAI-compatible server, and how to reach it from whatever event loop is running."""

    def __init__(
        self,
        *,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        connections: int,
        client: AsyncOpenAI | Sender | None = None,
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
        self._senders = PerLoop(self._open)
        self._slots = PerLoopSemaphore(connections)

    @property
    def where(self) -> str:
        """The server, for messages: without user, password and query."""
        return redacted_url(self._address)

    @property
    def _address(self) -> str:
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI

    def _shown(self, words: str) -> str:
        """Somebody's words without the keys and passwords that this endpoint knows."""
        known = [self._api_key, os.environ.get("OPENAI_API_KEY"), *_credentials(self._address)]
        known.append(getattr(self._given, "api_key", None))
        return redacted(words, secrets=[one for one in known if isinstance(one, str)])

    def _open(self) -> Sender:
        if self._given is None:
            # Imported where it is needed: it takes a quarter of a second.
            from steelyard.judge.http import HTTPSender

            return HTTPSender(self._address, self._headers(), connections=self._connections)
        if isinstance(self._given, Sender):
            return self._given
        return _BroughtClient(self._given)

    def _headers(self) -> dict[str, str]:
        """What is sent along; of the environment only where the server is the environment's."""
        if self.base_url is not None:
            return {"Authorization": f"Bearer {self._api_key or _NO_KEY}"}
        named = {name: os.environ.get(variable) for name, variable in _FROM_ENVIRONMENT.items()}
        lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
        pairs = (line.partition(":") for line in lines if ":" in line)
        own = {name.strip(): value.strip() for name, _, value in pairs}
        return {
            "Authorization": f"Bearer {self._api_key or os.environ.get('OPENAI_API_KEY') or _NO_KEY}",
            **{name: value for name, value in named.items() if value},
            **own,
        }

    async def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a JSON object within the timeout as a whole, and read the one that is the reply."""
        try:
            # The wait for a place does not count as part of the request, whose seconds begin inside.
            async with self._slots.here(), asyncio.timeout(self.timeout):
                reply = await self._senders.here().exchange(path, body)
        except TimeoutError as error:
            raise JudgeUnavailable(
                f"no reply from {self.where} within {self.timeout:g} s", cause="timeout"
            ) from error
        except SteelyardError:
            raise
        except Exception as error:  # whatever it is of the library's
            reason = self._shown(str(error)) or error_words(error)
            raise JudgeUnavailable(f"cannot reach {self.where}: {reason}", cause="unreachable") from error
        if 200 <= reply.status < 300:
            # A long one takes half a second, in which other turns go on.
            if len(reply.content) > _AT_ONCE:
                return await asyncio.to_thread(body_of, reply.content)
            return body_of(reply.content)
        message, code = refusal_in(reply.content)
        message = self._shown(message)
        raise named_error(reply.status, message, code=code, headers=reply.headers, where=self.where)

    async def aclose(self) -> None:
        """Close the running loop's connections; a later request opens new ones."""
        if (sender := self._senders.pop()) is not None:
            await sender.aclose()

    def __repr__(self) -> str:
        return f"Endpoint({self.where!r})"


def _credentials(address: str) -> list[str]:
    """What of an address is nobody's business: user, password, and the values of its query."""
    try:
        parts = urlsplit(address)
        values = [value for _, value in parse_qsl(parts.query)]
        return [text for text in (parts.username, parts.password, *values) if text]
    except ValueError:
        return []
