"""A chat model of LangChain's over the OpenAI client, tools included."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import openai
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


class ChatModel(BaseChatModel):
    """Asks the server that OPENAI_BASE_URL names."""

    def _generate(self, messages: list[BaseMessage], stop: Any = None, *_: Any, **more: Any) -> ChatResult:
        tools = {"tools": more["tools"]} if more.get("tools") else {}
        with openai.OpenAI() as client:
            reply = client.chat.completions.create(
                model="gpt-4o-mini", messages=[_message(one) for one in messages], **tools
            )
        said = reply.choices[0].message
        calls = [
            {"name": call.function.name, "args": json.loads(call.function.arguments), "id": call.id}
            for call in said.tool_calls or ()
            if call.type == "function"
        ]
        message = AIMessage(content=said.content or "", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    @property
    def _llm_type(self) -> str:
        return "test"


def _message(message: BaseMessage) -> Any:
    found: dict[str, Any] = {"role": _ROLES[message.type], "content": str(message.content)}
    if isinstance(message, ToolMessage):
        found["tool_call_id"] = message.tool_call_id
    if isinstance(message, AIMessage) and message.tool_calls:
        found["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for call in message.tool_calls
        ]
    return found
