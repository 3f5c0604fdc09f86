"""A chat model of LangChain that says what its subclass makes of its messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable


class SpeakingModel(BaseChatModel):
    """A chat model that may call tools; it streams word by word."""

    def reply_to(self, messages: list[BaseMessage], manager: Any) -> AIMessage:
        """What it says; `manager` is the one of its run."""
        raise NotImplementedError

    def pieces(self, text: str) -> list[str]:
        """In which pieces a text is streamed."""
        *words, last = text.split(" ")
        return [*(f"{word} " for word in words), last]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self

    def get_num_tokens(self, text: str) -> int:
        return len(text.split())

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply_to(messages, run_manager))])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        message = self.reply_to(messages, run_manager)
        if message.tool_calls:
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_calls=message.tool_calls))
            return
        for piece in self.pieces(message.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
