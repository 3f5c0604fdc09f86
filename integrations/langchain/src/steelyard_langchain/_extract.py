"""The question, the answer and the reference of a turn, out of what its root was given and returned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from steelyard.record import plain, text_of
from steelyard_langchain._options import Key
from steelyard_langchain._shapes import (
    is_message,
    last_human,
    message_text,
    messages_in,
    role_of,
    state_of,
)

__all__ = ["answer_of", "ends_in_tool_call", "pick", "question_of", "text_in"]

QUESTION_KEYS = ("question", "query", "input", "user_input", "prompt")
ANSWER_KEYS = (
    "structured_response",
    *(
        "answer",
        "result",
        "output",
        "output_text",
        "response",
        "final_answer",
        "generation",
        "text",
        "content",
    ),
)


def pick(value: Any, key: Key) -> Any:
    """What stands under a key of a mapping or state object, or what a function makes of the value."""
    if callable(key):
        return key(value)
    state = state_of(value)
    return None if state is None else state.get(key)


def text_in(value: Any) -> str:
    """A text, a message or content blocks as text; empty for everything else."""
    if isinstance(value, str):
        return text_of(value)
    if is_message(value):
        return message_text(value)
    if isinstance(value, list) and value and all(isinstance(item, (str, Mapping)) for item in value):
        return message_text({"content": value})
    inner = getattr(value, "text", None)  # generations and completion values
    return text_of(inner) if isinstance(inner, str) else ""


def question_of(inputs: Any, outputs: Any, key: Key | None) -> str:
    """The user's own words.

    Args:
        inputs: What the root was given.
        outputs: What it returned: a resumed or remembered conversation has the question only there.
        key: Where the user says it stands.
    """
    if key is not None:
        return text_in(pick(inputs, key)) or text_in(pick(outputs, key))
    return _asked_in(inputs) or _asked_in(outputs, state_only=True)


def _asked_in(value: Any, *, state_only: bool = False) -> str:
    if isinstance(value, str):
        return "" if state_only else text_of(value)
    state = state_of(value)
    if state is not None:
        for name in QUESTION_KEYS:
            found = state.get(name)
            asked = _last_asked(messages_in(found)) or text_in(found)
            if asked.strip():
                return asked
    return _last_asked(messages_in(value))


def _last_asked(messages: list[Any]) -> str:
    at = last_human(messages)
    return message_text(messages[at]) if at >= 0 else ""


def answer_of(outputs: Any, inputs: Any, key: Key | None) -> str:
    """What the user was shown; empty where the output is none of the known shapes."""
    if key is not None:
        return text_in(pick(outputs, key))
    if isinstance(outputs, str) or is_message(outputs):
        return text_in(outputs)
    state = state_of(outputs)
    if state is not None:
        given = state_of(inputs) or {}
        for name in ANSWER_KEYS:
            found = state.get(name)
            text = _said(found)
            if text.strip() and not (name in given and text == text_in(given[name])):
                return text
    messages = messages_in(outputs)
    if messages:
        return _replied(messages)
    return _only_text(state, inputs) if state is not None else text_in(outputs)


def _said(value: Any) -> str:
    """What stands under an answer's name: a text, messages, or an object that has the answer in it."""
    text = _replied(messages_in(value)) or text_in(value)
    state = None if text else state_of(value)
    if state is None:
        return text
    found = (text_in(state.get(name)) for name in ANSWER_KEYS)
    # An object of nobody's known shape was shown as a whole.
    return next(filter(None, found), "") or json.dumps(plain(state), ensure_ascii=False)


def _replied(messages: list[Any]) -> str:
    """The last thing said to the user since they last spoke.

    A tool that returns to the user directly leaves its own message last.
    """
    turn = messages[last_human(messages) + 1 :]
    if turn and role_of(turn[-1]) == "tool":
        return message_text(turn[-1])
    replies = (message_text(message) for message in reversed(turn) if role_of(message) == "ai")
    return next((reply for reply in replies if reply.strip()), "")


def _only_text(state: Mapping[str, Any], inputs: Any) -> str:
    """The one text in a mapping that was not there before."""
    given = state_of(inputs) or {}
    known = {value for value in (inputs, *given.values()) if isinstance(value, str)}
    texts = [value for value in state.values() if isinstance(value, str) and value not in known]
    return text_of(texts[0]) if len(texts) == 1 else ""


def ends_in_tool_call(outputs: Any) -> bool:
    """Whether a conversation stops where a tool was about to be called: somebody has to say go on."""
    messages = messages_in(outputs)
    return (
        bool(messages) and role_of(messages[-1]) == "ai" and bool(getattr(messages[-1], "tool_calls", None))
    )
