"""Judging and embedding with models that come as LangChain objects: any provider there is a package for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from steelyard.errors import ConfigurationError, JudgeError, JudgeUnavailable, MalformedReply
from steelyard.judge import (
    Answer,
    Capabilities,
    Claims,
    Contradicted,
    Entities,
    Noncommittal,
    Pick,
    Predicate,
    Question,
    Questions,
    Rating,
    Relevant,
    Reply,
    Request,
    Same,
    Supported,
    Unanswered,
    Useful,
)
from steelyard.judge._openai import named_error
from steelyard.judge._parse import find, read
from steelyard.judge._prompts import PROMPT_VERSION, render
from steelyard.judge._schema import schema
from steelyard.judge.traffic._limit import Slots
from steelyard.scores import Usage
from steelyard_langchain._shapes import message_text

__all__ = ["LangChainEmbedder", "LangChainJudge"]

_SPELLED = "Reply with one JSON object that fits this JSON schema, and with nothing else:\n"
_KINDS: frozenset[type[Question]] = frozenset(
    {
        *(Claims, Contradicted, Entities, Noncommittal, Pick, Predicate),
        *(Questions, Rating, Relevant, Same, Supported, Useful),
    }
)
_Result = TypeVar("_Result")


class LangChainJudge:
    """A judge that is a LangChain chat model.

    The model is asked in words for one JSON object; what is wanted stands in the prompt as a JSON schema,
    since models differ in how they take one. Retries are the model's own business (`max_retries` of most of
    them), so that there is one layer of them. Its calls are never recorded.

    Args:
        model: A chat model, or any runnable that takes messages and returns a message or a text. name: How
        Scores name it; `langchain:` and the model's own name by default. timeout: Seconds until a request is
        given up. concurrency: Requests in flight at most. reasons: Whether each verdict comes with a short
        reason; without, replies are shorter and cheaper. max_questions: Questions in one request.
        max_characters: Characters of material and questions in one request; lower it for small context
        windows.

    Raises:
        ConfigurationError: If this is no model, or an option makes no sense.
    """

    def __init__(
        self,
        model: Runnable[Any, Any],
        *,
        name: str | None = None,
        timeout: float = 60.0,
        concurrency: int = 16,
        reasons: bool = True,
        max_questions: int = 60,
        max_characters: int = 400_000,
    ) -> None:
        if not hasattr(model, "ainvoke"):
            raise ConfigurationError(f"{model!r} is no chat model: it has no ainvoke()")
        self._calls = _Calls(timeout=timeout, concurrency=concurrency)
        self._model = model
        self._reasons = reasons
        self.name = name or f"langchain:{_model_name(model)}"
        self.prompt_version = PROMPT_VERSION if reasons else f"{PROMPT_VERSION}-brief"
        self.capabilities = Capabilities(
            kinds=_KINDS, max_questions=max_questions, max_characters=max_characters
        )

    def __repr__(self) -> str:
        return f"LangChainJudge({self.name!r})"

    async def answer(self, request: Request) -> Reply:
        """Put the questions to the model.

        Raises:
            JudgeError: If the whole request came to nothing.
        """
        prompt = render(request, reasons=self._reasons)
        shape = json.dumps(schema(request, reasons=self._reasons), ensure_ascii=False, separators=(",", ":"))
        messages = [SystemMessage(prompt.system), HumanMessage(f"{prompt.user}{_SPELLED}{shape}")]
        started = time.perf_counter()
        message = await self._calls.run(lambda: self._model.ainvoke(messages), self.name)
        usage = _usage(message, seconds=time.perf_counter() - started)
        return Reply(answers=_answers(message_text(message), request), usage=usage)

    async def aclose(self) -> None:
        """Nothing to release: the model is yours."""


class LangChainEmbedder:
    """An embedder that is a LangChain embeddings object.

    Args:
        embeddings: The object.
        name: How Scores name it; `langchain:` and the model's own name by default.
        timeout: Seconds until a request is given up.
        concurrency: Requests in flight at most.

    Raises:
        ConfigurationError: If this is no embeddings object, or an option makes no sense.
    """

    def __init__(
        self, embeddings: Embeddings, *, name: str | None = None, timeout: float = 60.0, concurrency: int = 16
    ) -> None:
        if not hasattr(embeddings, "aembed_documents"):
            raise ConfigurationError(f"{embeddings!r} has no aembed_documents()")
        self._embeddings = embeddings
        self._calls = _Calls(timeout=timeout, concurrency=concurrency)
        self.name = name or f"langchain:{_model_name(embeddings)}"

    def __repr__(self) -> str:
        return f"LangChainEmbedder({self.name!r})"

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
        """One vector per text, in order.

        Raises:
            JudgeError: If there are no vectors.
        """
        started = time.perf_counter()
        vectors = await self._calls.run(lambda: self._embeddings.aembed_documents(list(texts)), self.name)
        if len(vectors) != len(texts):
            raise MalformedReply(f"{self.name}: {len(vectors)} vectors for {len(texts)} texts")
        return vectors, Usage(requests=1, seconds=time.perf_counter() - started)

    async def aclose(self) -> None:
        """Nothing to release: the object is yours."""


class _Calls:
    """Calls of a foreign object: so many at a time, each within its time, failures by name."""

    def __init__(self, *, timeout: float, concurrency: int) -> None:
        if timeout <= 0:
            raise ConfigurationError(f"timeout must be positive, not {timeout!r}")
        self._timeout = timeout
        self._slots = Slots(concurrency)

    async def run(self, call: Callable[[], Awaitable[_Result]], name: str) -> _Result:
        """Make a call.

        Raises:
            JudgeError: For whatever it raised, by name.
        """
        async with self._slots.here():
            try:
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


def _model_name(model: object) -> str:
    for attribute in ("model_name", "model", "model_id", "deployment_name"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__name__


def _answers(text: str, request: Request) -> dict[str, Answer]:
    found = find(text, request)
    if found is None:
        nonsense = Unanswered(cause="malformed_reply", detail="the reply holds no JSON with answers")
        return dict.fromkeys(request.questions, nonsense)
    return read(request, found)


def _usage(message: Any, *, seconds: float) -> Usage:
    counted = getattr(message, "usage_metadata", None)
    counted = counted if isinstance(counted, Mapping) else {}
    details = counted.get("input_token_details")
    return Usage(
        requests=1,
        prompt_tokens=counted.get("input_tokens") or 0,
        completion_tokens=counted.get("output_tokens") or 0,
        cached_tokens=(details.get("cache_read") or 0) if isinstance(details, Mapping) else 0,
        seconds=seconds,
    )
