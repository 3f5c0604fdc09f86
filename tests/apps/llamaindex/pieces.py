"""Components of LlamaIndex that need no network: a model that answers by its prompt, vectors of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from apps.island import PASSAGES, embed

Call = tuple[str, dict[str, Any]]
Rules = Sequence[tuple[tuple[str, ...], Any]]


def _by_rule(rules: Rules, prompt: str) -> Any:
    return next(reply for words, reply in rules if all(word in prompt for word in words))


class Completes(CustomLLM):
    """A completion model: replies as the first rule says whose words all stand in the prompt."""

    rules: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=8000, num_output=200)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=_by_rule(self.rules, prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        text = _by_rule(self.rules, prompt)

        def stream() -> CompletionResponseGen:
            said = ""
            for word in text.split(" "):
                delta = f" {word}" if said else word
                said += delta
                yield CompletionResponse(text=said, delta=delta)

        return stream()

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        async def stream() -> CompletionResponseAsyncGen:
            for piece in self.stream_complete(prompt):
                yield piece

        return stream()


class Chats(FunctionCallingLLM):
    """A chat model with tools: a rule's reply is a text, or a list of calls."""

    rules: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=8000, num_output=200, is_chat_model=True, is_function_calling_model=True
        )

    def _reply(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        reply = _by_rule(self.rules, "\n".join(str(message.content) for message in messages))
        text, called = (reply, []) if isinstance(reply, str) else ("", list(reply))
        more = {"tool_calls": called} if called else {}
        return ChatResponse(
            message=ChatMessage(role=MessageRole.ASSISTANT, content=text, additional_kwargs=more), delta=text
        )

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply(messages)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply(messages)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        def stream() -> ChatResponseGen:
            yield self._reply(messages)

        return stream()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        async def stream() -> ChatResponseAsyncGen:
            yield self._reply(messages)

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=str(self._reply([ChatMessage(content=prompt)]).message.content))

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return self.complete(prompt)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        raise NotImplementedError

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        raise NotImplementedError

    def _prepare_chat_with_tools(
        self,
        tools: Any,
        user_msg: Any = None,
        chat_history: Any = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        asked = [ChatMessage(role=MessageRole.USER, content=str(user_msg))] if user_msg is not None else []
        return {"messages": [*(chat_history or []), *asked]}

    def get_tool_calls_from_response(
        self, response: Any, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        called = response.message.additional_kwargs.get("tool_calls", [])
        return [
            ToolSelection(tool_id=f"{name}-{number}", tool_name=name, tool_kwargs=arguments)
            for number, (name, arguments) in enumerate(called)
        ]


def completes(*rules: tuple[str | tuple[str, ...], str], otherwise: str) -> Completes:
    """A completion model with rules, tried in order."""
    return Completes(rules=_plain(rules, otherwise))


def chats(*rules: tuple[str | tuple[str, ...], str | list[Call]], otherwise: str | list[Call]) -> Chats:
    """A chat model with rules, tried in order."""
    return Chats(rules=_plain(rules, otherwise))


def _plain(rules: Sequence[tuple[Any, Any]], otherwise: Any) -> list[tuple[tuple[str, ...], Any]]:
    return [*(((w,) if isinstance(w, str) else w, reply) for w, reply in rules), ((), otherwise)]


class Vectors(BaseEmbedding):
    """Embeds by words."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)


def node(text: str, **metadata: Any) -> TextNode:
    """A passage as a node."""
    number = PASSAGES.index(text) if text in PASSAGES else 99
    return TextNode(id_=f"n{number}", text=text, metadata=metadata)


def index(*texts: str) -> VectorStoreIndex:
    """A real index of these passages."""
    return VectorStoreIndex([node(text) for text in texts], embed_model=Vectors())


class Shelf(BaseRetriever):
    """Finds the same nodes whatever it is asked, unless a word of the query leads elsewhere."""

    def __init__(self, *texts: str, choose: Callable[[str], Sequence[str]] | None = None) -> None:
        super().__init__()
        self.choose = choose or (lambda query: texts)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self.choose(query_bundle.query_str)
        return [NodeWithScore(node=node(text), score=0.9 - at / 10) for at, text in enumerate(found)]
