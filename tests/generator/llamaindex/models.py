"""Models of LlamaIndex that say what their role says in the present turn: one completes, one chats."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
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

from generator.texts import place
from generator.turns import NOW, Turn

_CONDENSING = "standalone question"
_WINDOW = 100_000


def now() -> Turn:
    """The turn that this code runs for."""
    turn = NOW.get()
    if turn is None:
        raise LookupError("no turn runs here")
    return turn


def say(role: str, prompt: str) -> str:
    """What a model of a role says to a prompt."""
    turn = now()
    if _CONDENSING in prompt and role == "answer":
        return turn.rewritten
    if role == "relay":
        turn.relayed.append(prompt)
        return turn.draft
    if role == "rewrite":
        return turn.rewritten
    if role in ("answer", "accumulate"):
        return _answer(turn, prompt, keep=role == "accumulate")
    if role == "grade":
        return "yes" if any(place(text, prompt) >= 0 for text in turn.shown) else "no"
    return {"queries": f"{turn.rewritten}\nand more", "pick": '[{"choice": 1, "reason": "It fits."}]'}[role]


def _answer(turn: Turn, prompt: str, keep: bool) -> str:
    if keep and turn.prompt:
        turn.relayed.append(turn.prompt)
    turn.prompt = prompt
    turn.tries += 1
    if keep:
        return f"{turn.draft} ({turn.tries})"
    return prompt.strip() if turn.echoes else turn.answer


class Completes(CustomLLM):
    """A completion model."""

    role: str = "answer"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=_WINDOW, num_output=200)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=say(self.role, prompt))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        await asyncio.sleep(0)  # let the other tenant in
        return CompletionResponse(text=say(self.role, prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        text = say(self.role, prompt)

        def stream() -> CompletionResponseGen:
            for at in range(0, len(text), 40):
                yield CompletionResponse(text=text[: at + 40], delta=text[at : at + 40])

        return stream()

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        text = say(self.role, prompt)

        async def stream() -> CompletionResponseAsyncGen:
            for at in range(0, len(text), 40):
                yield CompletionResponse(text=text[: at + 40], delta=text[at : at + 40])

        return stream()


class Chats(FunctionCallingLLM):
    """A chat model; as an agent's it calls a tool for each hop, then answers."""

    role: str = "answer"
    tool: str = ""
    argument: str = "query"
    """What its argument is called."""
    hops: int = 0

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=_WINDOW, num_output=200, is_chat_model=True, is_function_calling_model=True
        )

    def _reply(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        turn, prompt = now(), "\n\n".join(str(message.content or "") for message in messages)
        asked = max((at for at, m in enumerate(messages) if m.role == MessageRole.USER), default=0)
        looked = sum(message.role == MessageRole.TOOL for message in messages[asked:])
        if looked < self.hops:
            called = [(self.tool, {self.argument: turn.queries[looked]})]
            message = ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": called})
            return ChatResponse(message=message, delta="")
        text = say(self.role, prompt)
        return ChatResponse(message=ChatMessage(role="assistant", content=text), delta=text)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply(messages)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        await asyncio.sleep(0)
        return self._reply(messages)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        said = self._reply(messages)

        def stream() -> ChatResponseGen:
            yield said

        return stream()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        said = self._reply(messages)

        async def stream() -> ChatResponseAsyncGen:
            yield said

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
        asked = [ChatMessage(role="user", content=str(user_msg))] if user_msg is not None else []
        return {"messages": [*(chat_history or []), *asked]}

    def get_tool_calls_from_response(
        self, response: Any, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        called = response.message.additional_kwargs.get("tool_calls", [])
        return [
            ToolSelection(tool_id=f"{name}-{number}", tool_name=name, tool_kwargs=arguments)
            for number, (name, arguments) in enumerate(called)
        ]


class Reasons(Chats):
    """A chat model that thinks, acts and answers in lines of text, as a ReAct agent reads them."""

    def _reply(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        turn, prompt = now(), "\n\n".join(str(message.content or "") for message in messages)
        asked = max(at for at, m in enumerate(messages) if str(m.content) == turn.question)
        looked = sum(str(message.content).startswith("Observation:") for message in messages[asked + 1 :])
        if looked < self.hops:
            arguments = json.dumps({self.argument: turn.queries[looked]})
            text = f"Thought: I need a tool.\nAction: {self.tool}\nAction Input: {arguments}"
        else:
            text = f"Thought: I can answer now.\nAnswer: {say(self.role, prompt)}"
        return ChatResponse(message=ChatMessage(role="assistant", content=text), delta=text)
