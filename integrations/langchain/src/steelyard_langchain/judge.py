"""Judging and embedding with models that come as LangChain objects: any provider there is a package for."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from steelyard.errors import ConfigurationError, MalformedReply
from steelyard.judge.chat._adapter import KINDS, Calls, answers_in, asked, model_name
from steelyard.judge.chat._prompts import PROMPT_VERSION
from steelyard.questions import Capabilities, Reply, Request
from steelyard.scores import Usage
from steelyard_langchain._extract import message_text

__all__ = ["LangChainEmbedder", "LangChainJudge"]


class LangChainJudge:
    """A judge that is a LangChain chat model.

    The model is asked in words for one JSON object; what is wanted stands in the prompt as a JSON schema,
    since models differ in how they take one. Retries are the model's own business (`max_retries` of most of
    them), so that there is one layer of them. Its calls are never recorded.

    Args:
        model: A chat model, or any runnable that takes messages and returns a message or a text.
        name: How Scores name it; `langchain:` and the model's own name by default.
        timeout: Seconds until a request is given up.
        concurrency: Requests in flight at most.
        reasons: Whether each verdict comes with a short reason; without, replies are shorter and cheaper.
        max_questions: Questions in one request.
        max_characters: Characters of material and questions in one request; lower it for small windows.

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
        self._calls = Calls(timeout=timeout, concurrency=concurrency)
        self._model = model
        self._reasons = reasons
        self.name = name or f"langchain:{model_name(model)}"
        self.prompt_version = PROMPT_VERSION if reasons else f"{PROMPT_VERSION}-brief"
        self.capabilities = Capabilities(
            kinds=KINDS, max_questions=max_questions, max_characters=max_characters
        )

    def __repr__(self) -> str:
        return f"LangChainJudge({self.name!r})"

    async def answer(self, request: Request) -> Reply:
        """Put the questions to the model.

        Raises:
            JudgeError: If the whole request came to nothing.
        """
        system, user = asked(request, reasons=self._reasons)
        messages = [SystemMessage(system), HumanMessage(user)]
        started = time.perf_counter()
        message = await self._calls.run(lambda: self._model.ainvoke(messages), self.name)
        usage = _usage(message, seconds=time.perf_counter() - started)
        return Reply(answers=answers_in(message_text(message), request), usage=usage)

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
        self._calls = Calls(timeout=timeout, concurrency=concurrency)
        self.name = name or f"langchain:{model_name(embeddings)}"

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
