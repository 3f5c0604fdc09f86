"""Chat messages, in the many shapes that frameworks and conventions give them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer", "systemmessage"), "system"),
    **dict.fromkeys(("user", "human", "humanmessage", "humanmessagechunk"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "chatbot", "aimessage", "aimessagechunk"), "assistant"),
    **dict.fromkeys(("tool", "function", "toolmessage", "functionmessage", "tool_result"), "tool"),
}
_TOOLS = re.compile(r"tool|function|observation|ipython|environment")
_TEXTS = ("text", "content", "response", "result", "toolResult")
_UNSAID = frozenset(
    (
        *("reasoning", "reasoning_content", "thinking", "redacted_thinking", "thought"),
        *("blob", "uri", "file", "file_data", "input_file", "image", "image_url", "input_image", "media"),
        *("audio", "input_audio", "video", "binary", "inline_data"),
    )
)
"""Kinds of parts that are not words of the message: what a model thought, and media."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    """Who said it."""
    text: str
    """What was said, without tool calls and media."""
    result: Any = field(default=None, compare=False)
    """What a tool returned, as it stands in its message."""


def messages_in(value: object) -> tuple[Message, ...]:
    """The messages of a conversation: a list of them, or an object that holds one under `messages`.

    An empty tuple means that the value is not a conversation.
    """
    if isinstance(value, Mapping):
        if "messages" in value:
            return messages_in(value["messages"])
        message = _message(value)
        return (message,) if message else ()
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        return ()
    if len(value) == 1 and isinstance(value[0], list) and _pair(value[0]) is None:
        return messages_in(value[0])
    found = [_message(item) for item in value]
    if any(found) and not all(found):
        # Frameworks have roles of their own, such as smolagents' `tool-response`.
        found = [known or _of_own_role(item) for known, item in zip(found, value, strict=True)]
    return tuple(message for message in found if message) if all(found) else ()


def arguments_in(value: object, depth: int = 4) -> tuple[str, ...]:
    """The arguments of the tool calls in some messages, each as JSON."""
    if isinstance(value, (list, tuple)) and depth > 0:
        return tuple(text for item in value for text in arguments_in(item, depth - 1))
    if not isinstance(value, Mapping) or depth <= 0:
        return ()
    if value.get("type") == "tool_call" and "arguments" in value:
        given = value["arguments"]
        return (given if isinstance(given, str) else json.dumps(given, default=str),)
    return arguments_in(value.get("parts"), depth - 1)


def _message(value: object) -> Message | None:
    if isinstance(value, (list, tuple)):
        return _pair(value)
    if not isinstance(value, Mapping):
        return None
    inner = value.get("kwargs", value.get("data"))
    if isinstance(inner, Mapping) and "content" in inner:
        # LangChain's two serialised forms: {"lc": 1, "kwargs": {...}} and {"type": "ai", "data": {...}}.
        return _message({"type": value.get("type"), **inner})
    role = _role(value.get("role")) or _role(value.get("type"))
    if role is None:
        return None
    for key in ("content", "parts", "blocks"):
        if key in value:
            result = value.get("result", value[key]) if role == "tool" else None
            return Message(role, text_in(value[key]), result)
    return Message(role, "")


def _of_own_role(value: object) -> Message | None:
    """A message whose role no convention has: of a tool if it says so, else not anybody's words."""
    role = value.get("role") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(role, str) or not role:
        return None
    kind = "assistant" if role.endswith("call") else "tool" if _TOOLS.search(role.lower()) else "system"
    return _message({**value, "role": kind})


def _pair(value: Sequence[Any]) -> Message | None:
    if len(value) != 2 or not isinstance(value[1], str):
        return None
    role = _role(value[0])
    return Message(role, value[1]) if role else None


def _role(value: object) -> Role | None:
    # Enums are shown with their class: `ChatRole.USER`.
    return _ROLES.get(value.rpartition(".")[2].lower()) if isinstance(value, str) else None


def text_in(content: object) -> str:
    """The text of a message's content: a string, or the texts among its parts."""
    if isinstance(content, str):
        return content.strip()
    if isinstance(content, Mapping):
        kind = str(content.get("type") or content.get("block_type") or "")
        if kind.endswith(("tool_call", "tool_use")) or kind in _UNSAID:
            return ""
        return next((text for key in _TEXTS if (text := text_in(content.get(key)))), "")
    if isinstance(content, Sequence) and not isinstance(content, (bytes, bytearray)):
        return "\n".join(filter(None, map(text_in, content)))
    return ""
