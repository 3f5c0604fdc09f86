"""Finding the question and the answer in whatever a framework was called with and gave back."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard_opentelemetry.spans._messages import Message, messages_in

MOST = 2_000_000
"""Characters of a JSON attribute that are parsed; a longer one is named as unreadable."""

_DEPTH = 6
_QUESTIONS = (
    *("question", "user_question", "query", "query_str", "user_query", "user_input", "user_msg", "input"),
    *("message", "user_message", "prompt", "search_query", "task", "q", "text"),
)
_WRAPPERS = ("inputs", "str_or_query_bundle", "query_bundle", "qb", "args", "kwargs", "start_event", "ev")
_ANSWERS = (
    *("answer", "final_answer", "output", "output_text", "response", "result", "generation", "completion"),
    *("text", "content", "outputs", "message", "response_txt"),
)
_ENCODED = re.compile(r'^\s*(?:\{\s*(?:"|\})|\[\s*(?:[\[{"\]]|-?\d))')
_UNSHOWN = re.compile(r"^(?:<[\w ]*generator|<[\w.<>]+ object|<coroutine|None$|null$)")
_SHOWN = re.compile(r"^(?:\w+Event\(.*\)|\w+\(\w+=.*\))$", re.DOTALL)
_LITERAL = r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_STOP = re.compile(rf"^\w*StopEvent\(result={_LITERAL}")


@dataclass(frozen=True, slots=True)
class Broken:
    """A value that should have been JSON and could not be read."""

    cause: str
    """`invalid_json` or `oversized`."""


def decode(value: object) -> Any:
    """What an attribute says: JSON decoded where it is JSON, a Broken where it only looks like it."""
    if not isinstance(value, str):
        return value
    if not _ENCODED.match(value):
        return value
    if len(value) > MOST:
        return Broken("oversized")
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return Broken("invalid_json")


def question_in(value: object, depth: int = _DEPTH) -> str:
    """The user's question in an input payload; nothing where none is found."""
    value = decode(value)
    if depth <= 0 or isinstance(value, Broken):
        return ""
    if isinstance(value, str):
        return _question_text(value)
    messages = messages_in(value)
    if messages:
        asked = next((m.text for m in reversed(messages) if m.role == "user" and m.text), "")
        return question_in(asked, depth - 1)
    if isinstance(value, Mapping):
        for key in (*_QUESTIONS, *_WRAPPERS):
            if key in value and (found := question_in(value[key], depth - 1)):
                return found
        return ""
    if isinstance(value, Sequence) and len(value) == 1:
        return question_in(value[0], depth - 1)
    return ""


def _question_text(value: str) -> str:
    text = value.strip()
    if _SHOWN.match(text):
        return named(text, _QUESTIONS)
    return "" if _UNSHOWN.match(text) else text


def named(shown: str, names: Sequence[str]) -> str:
    """A keyword argument's text in the way Python shows an object, as in `StartEvent(query='...')`."""
    for name in names:
        match = re.search(rf"\b{name}={_LITERAL}", shown[:MOST])
        if match and (text := _literal(match[1])):
            return text
    return ""


def _literal(source: str) -> str:
    try:
        value = ast.literal_eval(source)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
    return value.strip() if isinstance(value, str) else ""


def answer_in(value: object, depth: int = _DEPTH) -> str:
    """The answer in an output payload; nothing where none is found."""
    value = decode(value)
    if depth <= 0 or isinstance(value, Broken):
        return ""
    if isinstance(value, str):
        return _answer_text(value)
    messages = messages_in(value)
    if messages:
        return messages[-1].text if messages[-1].role == "assistant" else ""
    if isinstance(value, Mapping):
        if "generations" in value:
            return answer_in(value["generations"], depth - 1)
        for key in _ANSWERS:
            if key in value and (found := answer_in(value[key], depth - 1)):
                return found
        return ""
    if isinstance(value, Sequence) and len(value) == 1:
        return answer_in(value[0], depth - 1)
    return ""


def result_in(value: object) -> str:
    """What a tool returned, as text: a message's, or whatever an output says."""
    value = decode(value)
    if isinstance(value, Mapping) and "output" in value:
        value = value["output"]
    messages = () if isinstance(value, (str, Broken)) else messages_in(value)
    return messages[-1].text if messages else answer_in(value)


def _answer_text(value: str) -> str:
    text = value.strip()
    stop = _STOP.match(text)
    if stop:
        return _literal(stop[1])
    # Anything else that shows an object rather than a text: the model's own words are found elsewhere.
    if _UNSHOWN.match(text) or re.match(r"^(?:\w*Event|AgentOutput|ToolCall\w*|\w*Response)\(\w+=", text):
        return ""
    return text


def as_messages(value: object) -> tuple[Message, ...]:
    """The chat messages in a payload that may be JSON."""
    found = decode(value)
    return () if isinstance(found, Broken) else messages_in(found)
