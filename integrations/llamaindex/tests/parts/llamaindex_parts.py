"""Parts for the tests: real components of LlamaIndex whose documents and words are fixed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from importlib.metadata import version
from typing import Any

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
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from steelyard.record import Record
from steelyard.recording import Draft

CORE = tuple(int(part) for part in version("llama-index-core").split(".")[:3])
QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris."
PARIS = "Paris is the capital of France."
FRANCE = "France is a country in Europe."
BERLIN = "Berlin is the capital of Germany."
TEXTS = {"d1": (PARIS, 0.91), "d2": (FRANCE, 0.55), "d3": (BERLIN, 0.31)}


class Receiver:
    """Stands where a Monitor stands and keeps what it gets."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []

    def submit(self, turn: Record | Draft, /) -> None:
        assert not isinstance(turn, Record)
        self.drafts.append(turn)

    @property
    def records(self) -> list[Record]:
        return [record for draft in self.drafts if (record := draft.build()) is not None]

    @property
    def record(self) -> Record:
        (record,) = self.records
        return record


def node(key: str) -> NodeWithScore:
    text, score = TEXTS[key]
    return NodeWithScore(node=TextNode(id_=key, text=text), score=score)


class Fixed(BaseRetriever):
    """Finds the same documents whatever it is asked."""

    def __init__(self, *keys: str, error: Exception | None = None) -> None:
        super().__init__()
        self.keys = keys or ("d1", "d2", "d3")
        self.error = error

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self.error is not None:
            raise self.error
        return [node(key) for key in self.keys]


class Scripted(CustomLLM):
    """A completion model that says what a function of its prompt says, word by word where it streams."""

    say: Callable[[str], str] = lambda prompt: ANSWER
    slow: float = 0.0

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=8000, num_output=200)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.say(prompt))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        await asyncio.sleep(self.slow)
        return CompletionResponse(text=self.say(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        def stream() -> CompletionResponseGen:
            said = ""
            for word in self.say(prompt).split(" "):
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
                await asyncio.sleep(self.slow)
                yield piece

        return stream()


class Caller(FunctionCallingLLM):
    """A chat model that follows a script: either a text, or a call of a tool with its arguments."""

    script: list[str | tuple[str, dict[str, Any]]]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=8000, num_output=200, is_chat_model=True, is_function_calling_model=True
        )

    def _next(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        done = sum(message.role == MessageRole.ASSISTANT for message in messages)
        line = self.script[min(done, len(self.script) - 1)]
        if isinstance(line, str):
            return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=line), delta=line)
        message = ChatMessage(
            role=MessageRole.ASSISTANT, content="", additional_kwargs={"tool_calls": [line]}
        )
        return ChatResponse(message=message, delta="")

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._next(messages)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._next(messages)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        def stream() -> ChatResponseGen:
            yield self._next(messages)

        return stream()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        async def stream() -> AsyncGenerator[ChatResponse, None]:
            yield self._next(messages)

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

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
        messages = list(chat_history or [])
        if user_msg is not None:
            messages.append(ChatMessage(role=MessageRole.USER, content=str(user_msg)))
        return {"messages": messages}

    def get_tool_calls_from_response(
        self, response: Any, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        calls = response.message.additional_kwargs.get("tool_calls", [])
        return [
            ToolSelection(tool_id=str(number), tool_name=name, tool_kwargs=arguments)
            for number, (name, arguments) in enumerate(calls)
        ]


def engine(
    *keys: str,
    mode: str = "compact",
    streaming: bool = False,
    say: Callable[[str], str] | None = None,
    postprocessors: Sequence[Any] = (),
    retriever: BaseRetriever | None = None,
    llm: Any = None,
    **options: Any,
) -> RetrieverQueryEngine:
    """A query engine over fixed documents."""
    model = llm or Scripted(say=say or (lambda prompt: ANSWER))
    synthesizer = get_response_synthesizer(
        llm=model, response_mode=ResponseMode(mode), streaming=streaming, **options
    )
    return RetrieverQueryEngine(
        retriever=retriever or Fixed(*keys),
        response_synthesizer=synthesizer,
        node_postprocessors=list(postprocessors),
    )


def texts(record: Record) -> list[str]:
    return [context.text for context in record.contexts]
