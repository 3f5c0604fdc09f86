"""Judging and embedding with models that come as LlamaIndex objects."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM

from steelyard.errors import ConfigurationError, MalformedReply
from steelyard.judge._replies import usage_of
from steelyard.judge.chat._adapter import KINDS, Calls, answers_in, asked, model_name
from steelyard.judge.chat._prompts import PROMPT_VERSION
from steelyard.questions import Capabilities, Reply, Request
from steelyard.scores import Usage

__all__ = ["LlamaIndexEmbedder", "LlamaIndexJudge"]


class LlamaIndexJudge:
    """A judge that is a LlamaIndex LLM.

    The model is asked in words for one JSON object; what is wanted stands in the prompt as a JSON schema,
    since models differ in how they take one. Retries are the model's own business (`max_retries` of most of
    them), so that there is one layer of them. Its calls are never recorded.

    Args:
        llm: The model, chat or completion.
        name: How Scores name it; `llamaindex:` and the model's own name by default.
        timeout: Seconds until a request is given up; a model without asynchronous calls of its own cannot be.
        concurrency: Requests in flight at most.
        reasons: Whether each verdict comes with a short reason; without, replies are shorter and cheaper.
        max_questions: Questions in one request.
        max_characters: Characters of material and questions in one request; by default three for each token
            of the model's context window, less a quarter for the reply.

    Raises:
        ConfigurationError: If this is no LLM, or an option makes no sense.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        name: str | None = None,
        timeout: float = 60.0,
        concurrency: int = 16,
        reasons: bool = True,
        max_questions: int = 60,
        max_characters: int | None = None,
    ) -> None:
        if not hasattr(llm, "achat"):
            raise ConfigurationError(f"{llm!r} is no LLM of LlamaIndex: it has no achat()")
        self._calls = Calls(timeout=timeout, concurrency=concurrency)
        self._llm = llm
        self._reasons = reasons
        self.name = name or f"llamaindex:{_name(llm)}"
        self.prompt_version = PROMPT_VERSION if reasons else f"{PROMPT_VERSION}-brief"
        room = max_characters if max_characters is not None else _room(llm)
        self.capabilities = Capabilities(kinds=KINDS, max_questions=max_questions, max_characters=room)

    def __repr__(self) -> str:
        return f"LlamaIndexJudge({self.name!r})"

    async def answer(self, request: Request) -> Reply:
        """Put the questions to the model.

        Raises:
            JudgeError: If the whole request came to nothing.
        """
        system, user = asked(request, reasons=self._reasons)
        messages = [
            ChatMessage(role=MessageRole.SYSTEM, content=system),
            ChatMessage(role=MessageRole.USER, content=user),
        ]
        started = time.perf_counter()
        response = await self._calls.run(lambda: self._llm.achat(messages), self.name)
        usage = _usage(response, seconds=time.perf_counter() - started)
        return Reply(answers=answers_in(response.message.content or "", request), usage=usage)

    async def aclose(self) -> None:
        """Nothing to release: the model is yours."""


class LlamaIndexEmbedder:
    """An embedder that is a LlamaIndex embedding model.

    Args:
        embed_model: The model.
        name: How Scores name it; `llamaindex:` and the model's own name by default.
        timeout: Seconds until a request is given up.
        concurrency: Requests in flight at most.

    Raises:
        ConfigurationError: If this is no embedding model, or an option makes no sense.
    """

    def __init__(
        self,
        embed_model: BaseEmbedding,
        *,
        name: str | None = None,
        timeout: float = 60.0,
        concurrency: int = 16,
    ) -> None:
        if not hasattr(embed_model, "aget_text_embedding_batch"):
            raise ConfigurationError(f"{embed_model!r} has no aget_text_embedding_batch()")
        self._calls = Calls(timeout=timeout, concurrency=concurrency)
        self._model = embed_model
        self.name = name or f"llamaindex:{_name(embed_model)}"

    def __repr__(self) -> str:
        return f"LlamaIndexEmbedder({self.name!r})"

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
        """One vector per text, in order.

        Raises:
            JudgeError: If there are no vectors.
        """
        started = time.perf_counter()
        given = list(texts)
        vectors = await self._calls.run(lambda: self._model.aget_text_embedding_batch(given), self.name)
        if len(vectors) != len(texts):
            raise MalformedReply(f"{self.name}: {len(vectors)} vectors for {len(texts)} texts")
        return vectors, Usage(requests=1, seconds=time.perf_counter() - started)

    async def aclose(self) -> None:
        """Nothing to release: the model is yours."""


_UNNAMED = "unknown"


def _name(model: Any) -> str:
    """The model's own name; many leave the one in their metadata, or on themselves, at `unknown`."""
    told = getattr(getattr(model, "metadata", None), "model_name", None)
    if isinstance(told, str) and told not in ("", _UNNAMED):
        return told
    named = model_name(model)
    return type(model).__name__ if named == _UNNAMED else named


def _room(llm: Any) -> int:
    window = getattr(getattr(llm, "metadata", None), "context_window", None)
    return min(400_000, int(window * 3 * 0.75)) if isinstance(window, int) and window > 0 else 400_000


def _usage(response: Any, *, seconds: float) -> Usage:
    """What was counted: integrations put it next to the reply, or leave it in the provider's own."""
    beside = getattr(response, "additional_kwargs", None)
    if isinstance(beside, Mapping) and "prompt_tokens" in beside:
        return usage_of({"usage": dict(beside)}, requests=1, seconds=seconds)
    raw = getattr(response, "raw", None)
    counted: Any = raw.get("usage") if isinstance(raw, Mapping) else getattr(raw, "usage", None)
    if hasattr(counted, "model_dump"):
        counted = counted.model_dump()
    return usage_of({"usage": counted}, requests=1, seconds=seconds)
