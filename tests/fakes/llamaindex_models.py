"""Models of LlamaIndex whose subclass says what they reply: one completes, one chats and calls tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
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

WINDOW = 100_000
Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""


class CompletionModel(CustomLLM):
    """A completion model; it streams word by word."""

    window: int = WINDOW
    slow: float = 0.0
    """Seconds before each reply or piece of one that is awaited."""

    def says(self, prompt: str) -> str:
        """The reply to a prompt."""
        raise NotImplementedError

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=self.window, num_output=200)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.says(prompt))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        await asyncio.sleep(self.slow)
        return CompletionResponse(text=self.says(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        text = self.says(prompt)

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
                await asyncio.sleep(self.slow)
                yield piece

        return stream()


def replied(text: str, calls: Iterable[Call] = ()) -> ChatResponse:
    """What a chat model replies: a text, or calls of tools."""
    called = list(calls)
    more = {"tool_calls": called} if called else {}
    message = ChatMessage(role=MessageRole.ASSISTANT, content=text, additional_kwargs=more)
    return ChatResponse(message=message, delta=text)


class ChatModel(FunctionCallingLLM):
    """A chat model that may call tools; it streams its reply as one piece."""

    def replies(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        """The reply to some messages, made by `replied`."""
        raise NotImplementedError

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=WINDOW, num_output=200, is_chat_model=True, is_function_calling_model=True
        )

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.replies(messages)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        await asyncio.sleep(0)  # whoever else asks comes in between
        return self.replies(messages)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        reply = self.replies(messages)

        def stream() -> ChatResponseGen:
            yield reply

        return stream()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        reply = self.replies(messages)

        async def stream() -> ChatResponseAsyncGen:
            yield reply

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=str(self.chat([ChatMessage(content=prompt)]).message.content))

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=str((await self.achat([ChatMessage(content=prompt)])).message.content))

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
