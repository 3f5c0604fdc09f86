"""Judging and embedding with models that come as LangChain objects: any provider there is a package for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from steelyard.errors import ConfigurationError
from steelyard.judge.chat import ModelEmbedder, ModelJudge, model_name
from steelyard.scores import Usage
from steelyard_langchain.building._extract import message_text

__all__ = ["LangChainEmbedder", "LangChainJudge"]


class LangChainJudge(ModelJudge):
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
        ConfigurationError: If this is not a model, or an option makes no sense.
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
            raise ConfigurationError(f"{model!r} is not a chat model: it has no ainvoke()")
        super().__init__(
            name=name or f"langchain:{model_name(model)}",
            timeout=timeout,
            concurrency=concurrency,
            reasons=reasons,
            max_questions=max_questions,
            max_characters=max_characters,
        )
        self._model = model

    async def complete(self, system: str, user: str) -> tuple[str, Usage]:
        """The model's reply to the two messages."""
        message = await self._model.ainvoke([SystemMessage(system), HumanMessage(user)])
        return message_text(message), _counted(message)


class LangChainEmbedder(ModelEmbedder):
    """An embedder that is a LangChain embeddings object.

    Args:
        embeddings: The object.
        name: How Scores name it; `langchain:` and the model's own name by default.
        timeout: Seconds until a request is given up.
        concurrency: Requests in flight at most.

    Raises:
        ConfigurationError: If this is not an embeddings object, or an option makes no sense.
    """

    def __init__(
        self, embeddings: Embeddings, *, name: str | None = None, timeout: float = 60.0, concurrency: int = 16
    ) -> None:
        if not hasattr(embeddings, "aembed_documents"):
            raise ConfigurationError(f"{embeddings!r} has no aembed_documents()")
        super().__init__(
            name=name or f"langchain:{model_name(embeddings)}", timeout=timeout, concurrency=concurrency
        )
        self._embeddings = embeddings

    async def vectors(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """One vector per text, in order."""
        return await self._embeddings.aembed_documents(texts)


def _counted(message: Any) -> Usage:
    counted = getattr(message, "usage_metadata", None)
    counted = counted if isinstance(counted, Mapping) else {}
    details = counted.get("input_token_details")
    return Usage(
        prompt_tokens=counted.get("input_tokens") or 0,
        completion_tokens=counted.get("output_tokens") or 0,
        cached_tokens=(details.get("cache_read") or 0) if isinstance(details, Mapping) else 0,
    )
