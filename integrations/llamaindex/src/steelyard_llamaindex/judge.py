"""Judging and embedding with models that come as LlamaIndex objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM

from steelyard.errors import ConfigurationError
from steelyard.judge.chat import ModelEmbedder, ModelJudge, ModelOptions, model_name, usage_of
from steelyard.scores import Usage


class LlamaIndexJudge(ModelJudge):
    """A judge that is a LlamaIndex LLM.

    Retries are the model's own business (`max_retries` of most of them). Its calls are never recorded.

    Args:
        llm: The model, chat or completion.
        name: How Scores name it; `llamaindex:` and the model's own name by default.
        options: As for `steelyard.judge.chat.ModelJudge`. A model without asynchronous calls of its own knows
            no `timeout`. `max_characters` is by default three for each token of the model's context window,
            less a quarter for the reply.

    Raises:
        ConfigurationError: If this is not an LLM, or an option makes no sense.
    """

    def __init__(self, llm: LLM, *, name: str | None = None, **options: Unpack[ModelOptions]) -> None:
        if not hasattr(llm, "achat"):
            raise ConfigurationError(
                f"{llm!r} is not an LLM of LlamaIndex: it has no achat(); give one, such as Settings.llm"
            )
        options.setdefault("max_characters", _room(llm))
        super().__init__(name=name or f"llamaindex:{_name(llm)}", **options)
        self._llm = llm

    async def complete(self, system: str, user: str) -> tuple[str, Usage]:
        """The model's reply to the two messages."""
        said = {MessageRole.SYSTEM: system, MessageRole.USER: user}
        response = await self._llm.achat(
            [ChatMessage(role=role, content=text) for role, text in said.items()]
        )
        return response.message.content or "", _counted(response)


class LlamaIndexEmbedder(ModelEmbedder):
    """An embedder that is a LlamaIndex embedding model.

    Args:
        embed_model: The model.
        name: How Scores name it; `llamaindex:` and the model's own name by default.
        timeout: Seconds until a request is given up.
        concurrency: Requests in flight at most.

    Raises:
        ConfigurationError: If this is not an embedding model, or an option makes no sense.
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
            raise ConfigurationError(
                f"{embed_model!r} has no aget_text_embedding_batch(); "
                "give a model such as Settings.embed_model"
            )
        super().__init__(
            name=name or f"llamaindex:{_name(embed_model)}", timeout=timeout, concurrency=concurrency
        )
        self._model = embed_model

    async def vectors(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """One vector per text, in order."""
        return await self._model.aget_text_embedding_batch(texts)


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


def _counted(response: Any) -> Usage:
    """What was counted: integrations put it next to the reply, or leave it in the provider's own."""
    beside = getattr(response, "additional_kwargs", None)
    if isinstance(beside, Mapping) and "prompt_tokens" in beside:
        return usage_of({"usage": dict(beside)})
    raw = getattr(response, "raw", None)
    counted: Any = raw.get("usage") if isinstance(raw, Mapping) else getattr(raw, "usage", None)
    if hasattr(counted, "model_dump"):
        counted = counted.model_dump()
    return usage_of({"usage": counted})
