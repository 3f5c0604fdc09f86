"""Judging and embedding with models that come as LangChain objects: any provider there is a package for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from steelyard.errors import ConfigurationError
from steelyard.judge.chat import ModelEmbedder, ModelJudge, ModelOptions, model_name
from steelyard.scores import Usage
from steelyard_langchain._extract import message_text


class LangChainJudge(ModelJudge):
    """A judge that is a LangChain chat model.

    Retries are the model's own business (`max_retries` of most of them). Its calls are never recorded.

    Args:
        model: A chat model, or any runnable that takes messages and returns a message or a text.
        name: How Scores name it; `langchain:` and the model's own name by default.
        options: As for `steelyard.judge.chat.ModelJudge`; lower `max_characters` for small windows.

    Raises:
        ConfigurationError: If this is not a model, or an option makes no sense.
    """

    def __init__(
        self, model: Runnable[Any, Any], *, name: str | None = None, **options: Unpack[ModelOptions]
    ) -> None:
        if not hasattr(model, "ainvoke"):
            raise ConfigurationError(
                f"{model!r} is not a chat model: it has no ainvoke(); give a chat model of LangChain"
            )
        super().__init__(name=name or f"langchain:{model_name(model)}", **options)
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
            raise ConfigurationError(
                f"{embeddings!r} has no aembed_documents(); give embeddings of LangChain"
            )
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
