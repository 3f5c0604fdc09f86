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
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import parse_qsl, urlsplit

from steelyard._internal.per_loop import PerLoop, PerLoopSemaphore
from steelyard._internal.redact import error_words, redacted, redacted_url
from steelyard.errors import ConfigurationError, JudgeUnavailable, SteelyardError
from steelyard.judge._replies import body_of, named_error, refusal_in

if TYPE_CHECKING:
    from openai import AsyncOpenAI

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
            from steelyard.judge._http import HTTPSender

            return HTTPSender(self._address, self._headers(), connections=self._connections)
        if isinstance(self._given, Sender):
            return self._given
        from steelyard.judge._brought import BroughtClient

        return BroughtClient(self._given)

    def _headers(self) -> dict[str, str]:
        """What is sent along; of the environment only where the server is the environment's."""
        if self.base_url is not None:
            return {"Authorization": f"Bearer {self._api_key or _NO_KEY}"}
        named = {name: os.environ.get(variable) for name, variable in _FROM_ENVIRONMENT.items()}
        return {
            "Authorization": f"Bearer {self._api_key or os.environ.get('OPENAI_API_KEY') or _NO_KEY}",
            **{name: value for name, value in named.items() if value},
            **_headers_in_environment(),
        }

    async def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a JSON object within the timeout as a whole, and read the one that is the reply.

        Raises:
            JudgeError: For whatever went wrong, by name.
        """
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


def _headers_in_environment() -> dict[str, str]:
    """OPENAI_CUSTOM_HEADERS: a line for each."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
    pairs = (line.partition(":") for line in lines if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}
