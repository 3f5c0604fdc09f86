"""What judges and embedders made of other frameworks' models have in common.

A judge of your own framework subclasses `ModelJudge` and writes `complete`; an embedder subclasses
`ModelEmbedder` and writes `vectors`.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypedDict, TypeVar

from steelyard._internal.loops import PerLoopSemaphore
from steelyard._internal.text import error_words, redacted
from steelyard.errors import ConfigurationError, JudgeError, JudgeUnavailable
from steelyard.judge.chat._kinds import KINDS
from steelyard.judge.chat._obedience import Obedience, asked
from steelyard.judge.chat._parse import answers_in
from steelyard.judge.chat._prompts import Reasoning, reasoning_of, render, schema, version_of
from steelyard.judge.endpoint import named_error
from steelyard.questions import Capabilities, Reply, Request
from steelyard.recording import unrecorded
from steelyard.scores import Usage

_Result = TypeVar("_Result")


class _Foreign:
    """An object of another framework: so many calls at a time, each in time, unrecorded, failures by name."""

    def __init__(self, *, name: str, timeout: float = 60.0, concurrency: int = 16) -> None:
        if timeout <= 0:
            raise ConfigurationError(f"timeout must be positive, not {timeout!r}")
        self.name = name
        self._timeout = timeout
        self._slots = PerLoopSemaphore(concurrency)

    async def _call(self, call: Callable[[], Awaitable[_Result]]) -> tuple[_Result, Usage]:
        """What a call came to, and the request and the time that it took."""
        started = time.perf_counter()
        async with self._slots.here():
            try:
                with unrecorded():
                    async with asyncio.timeout(self._timeout):
                        result = await call()
            except JudgeError:
                raise
            except TimeoutError as error:
                message = f"no reply from {self.name} within {self._timeout:g} s"
                raise JudgeUnavailable(message, cause="timeout") from error
            except Exception as error:
                raise _named(error, self.name) from error
        return result, Usage(requests=1, seconds=time.perf_counter() - started)

    async def aclose(self) -> None:
        """Nothing to release: the object belongs to whoever made it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def _named(error: Exception, name: str) -> JudgeError:
    """Providers' errors differ in everything but the HTTP status that most of them carry."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    if not isinstance(status, int):
        return JudgeUnavailable(f"{name}: {error_words(error)}", cause="unreachable")
    headers = getattr(getattr(error, "response", None), "headers", None)
    code = getattr(error, "code", None)
    return named_error(
        status,
        redacted(str(error)),
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


class ModelOptions(TypedDict, total=False):
    """The options of `ModelJudge` beside its name."""

    timeout: float
    concurrency: int
    reasons: bool
    max_questions: int
    max_characters: int
    reasoning: Reasoning | None


class ModelJudge(_Foreign, ABC):
    """A judge that is a model object of another framework. Subclasses say how to call it, in `complete`.

    The model is asked in words for one JSON object; what is wanted stands in the prompt as a JSON schema,
    since models differ in how they take one. Retries are the model's own business (`max_retries` of most of
    them), so that there is one layer of them. Its calls are never recorded.

    Args:
        name: How Scores name it.
        timeout: Seconds until a request is given up.
        concurrency: Requests in flight at most.
        reasons: Whether each verdict comes with a short reason; without, replies are shorter and cheaper.
        max_questions: Questions in one request.
        max_characters: Characters of material and questions in one request.
        reasoning: As for `ChatJudge`.

    Raises:
        ConfigurationError: If an option makes no sense.
    """

    def __init__(
        self,
        *,
        name: str,
        timeout: float = 60.0,
        concurrency: int = 16,
        reasons: bool = True,
        max_questions: int = 60,
        max_characters: int = 400_000,
        reasoning: Reasoning | None = None,
    ) -> None:
        super().__init__(name=name, timeout=timeout, concurrency=concurrency)
        self._reasoning = reasoning_of(reasons, reasoning)
        self._obedience = Obedience()
        self.prompt_version = version_of(self._reasoning)
        self.capabilities = Capabilities(
            kinds=frozenset(KINDS), max_questions=max_questions, max_characters=max_characters
        )

    @abstractmethod
    async def complete(self, system: str, user: str) -> tuple[str, Usage]:
        """Send the two messages to the model; returns its reply, and what the provider counted.

        It may raise whatever the framework raises. Requests and seconds are counted by the caller.
        """

    async def answer(self, request: Request) -> Reply:
        """Put the questions to the model."""
        made = asked(request)
        prompt = render(made.request, reasoning=self._reasoning, nonce=made.nonce)
        user = prompt.spelled(schema(made.on_the_wire(), reasoning=self._reasoning))
        (text, counted), spent = await self._call(lambda: self.complete(prompt.system, user))
        answers, _ = answers_in(text, made.request, nonce=made.nonce)
        return Reply(answers=self._obedience.judged(answers, made.request), usage=counted + spent)


class ModelEmbedder(_Foreign, ABC):
    """An embedder that is an object of another framework. Subclasses say how to call it, in `vectors`.

    Args:
        name: How Scores name it.
        timeout: Seconds until a call is given up.
        concurrency: Calls in flight at most.

    Raises:
        ConfigurationError: If an option makes no sense.
    """

    @abstractmethod
    async def vectors(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """One vector per text, in order; it may raise whatever the framework raises."""

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
        """One vector per text, in order.

        Raises:
            JudgeError: If there are no vectors.
        """
        return await self._call(lambda: self.vectors(list(texts)))
