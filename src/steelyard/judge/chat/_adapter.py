"""What judges and embedders made of other frameworks' models have in common."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from steelyard.errors import ConfigurationError, JudgeError, JudgeUnavailable
from steelyard.judge._openai_client import named_error
from steelyard.judge.chat._parse import find, read
from steelyard.judge.chat._prompts import render
from steelyard.judge.chat._schema import schema
from steelyard.judge.middleware._limit import PerLoopSemaphore
from steelyard.questions import (
    Answer,
    Choose,
    Claims,
    Contradicted,
    Entities,
    GeneratedQuestions,
    Noncommittal,
    Predicate,
    Question,
    Rating,
    Relevant,
    Request,
    Same,
    Supported,
    Unanswered,
    Useful,
)
from steelyard.recording import unrecorded

KINDS: frozenset[type[Question]] = frozenset(
    {
        *(Claims, Contradicted, Entities, Noncommittal, Choose, Predicate),
        *(GeneratedQuestions, Rating, Relevant, Same, Supported, Useful),
    }
)
"""What a chat model can be asked: everything but embeddings."""

_SPELLED = "Reply with one JSON object that fits this JSON schema, and with nothing else:\n"
_Result = TypeVar("_Result")


class Calls:
    """Calls of a foreign object: so many at a time, each within its time, unrecorded, failures by name.

    Args:
        timeout: Seconds until a call is given up.
        concurrency: Calls in flight at most.

    Raises:
        ConfigurationError: If an option makes no sense.
    """

    def __init__(self, *, timeout: float, concurrency: int) -> None:
        if timeout <= 0:
            raise ConfigurationError(f"timeout must be positive, not {timeout!r}")
        self._timeout = timeout
        self._slots = PerLoopSemaphore(concurrency)

    async def run(self, call: Callable[[], Awaitable[_Result]], name: str) -> _Result:
        """Make a call.

        Raises:
            JudgeError: For whatever it raised, by name.
        """
        async with self._slots.here():
            try:
                with unrecorded():
                    async with asyncio.timeout(self._timeout):
                        return await call()
            except TimeoutError as error:
                message = f"no reply from {name} within {self._timeout:g} s"
                raise JudgeUnavailable(message, cause="timeout") from error
            except Exception as error:
                raise _named(error, name) from error


def _named(error: Exception, name: str) -> JudgeError:
    """Providers' errors differ in everything but the HTTP status that most of them carry."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    if not isinstance(status, int):
        return JudgeUnavailable(f"{name}: {type(error).__name__}: {error}", cause="unreachable")
    headers = getattr(getattr(error, "response", None), "headers", None)
    code = getattr(error, "code", None)
    return named_error(
        status,
        str(error),
        code=code if isinstance(code, str) else None,
        headers=headers if isinstance(headers, Mapping) else {},
        where=name,
    )


def model_name(model: object) -> str:
    """What a model calls itself, under the names that frameworks use; else its class."""
    for attribute in ("model_name", "model", "model_id", "deployment_name"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__name__


def asked(request: Request, *, reasons: bool) -> tuple[str, str]:
    """The system's and the user's words for a request, with the wanted JSON schema spelled out."""
    prompt = render(request, reasons=reasons)
    shape = json.dumps(schema(request, reasons=reasons), ensure_ascii=False, separators=(",", ":"))
    return prompt.system, f"{prompt.user}{_SPELLED}{shape}"


def answers_in(text: str, request: Request) -> dict[str, Answer]:
    """The answers in a reply; each is `malformed_reply` where it holds no JSON at all."""
    found = find(text, request)
    if found is None:
        nonsense = Unanswered(cause="malformed_reply", detail="the reply holds no JSON with answers")
        return dict.fromkeys(request.questions, nonsense)
    return read(request, found)
