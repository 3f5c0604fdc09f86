"""The user's own words in what a turn was given, as they stand: what the user typed is never read as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.record import text_of
from steelyard.recording.reading._messages import messages_in, spoken
from steelyard.recording.reading._shapes import attribute, is_document, is_message_mapping, state_of
from steelyard.recording.reading._values import is_document_mapping

_DEPTH = 6
_MARKS = ("?", "\uff1f", "\u061f")
ASKED_NAMES = (
    *("question", "user_question", "user_query", "user_input", "user_msg", "user_message", "query"),
    "query_str",
    *("input", "task", "message", "prompt", "search_query", "inputs", "user_prompt", "msg", "q", "ask"),
)
"""Names that applications keep the question under; what says "question" itself comes first."""
_ENDS = ("_question", "_query")
_MESSAGES = ("messages", "input_messages", "chat_messages", "new_message", "conversation", "contents")
_WRAPPERS = (
    *("str_or_query_bundle", "query_bundle", "kwargs", "args", "start_event", "ev", "event", "state"),
    *("request", "body", "payload", "values", "data", "arguments", "parameters", "params"),
)


def asked_in(value: Any, depth: int = _DEPTH) -> str:
    """What the user said in an input of any shape; empty if that is not plain.

    A text is taken as it is. Of a conversation it is the user's last message; of a mapping or a state what
    stands under a usual name.

    >>> asked_in({"chat_history": [("human", "Hi"), ("ai", "Hello")], "question": "How tall is it?"})
    'How tall is it?'
    >>> asked_in([{"type": "human", "data": {"content": "Tell me more!"}}])
    'Tell me more!'
    """
    if isinstance(value, str):
        return text_of(value).strip()
    if depth <= 0:
        return ""
    state = state_of(value)
    if (
        messages := messages_in(value)
        if state is None or not state.keys().isdisjoint(("role", "type"))
        else ()
    ):
        return next((text.strip() for text in reversed(spoken(messages))), "")
    if state is not None:
        return _in_state(state, depth)
    if isinstance(value, (list, tuple)):
        return asked_in(value[0], depth - 1) if len(value) == 1 and not is_document(value[0]) else ""
    query = attribute(value, "query_str")
    return query.strip() if isinstance(query, str) else ""


def is_question(text: str) -> bool:
    """Whether a text ends with a question mark, of any script, be it in quotes or in bold."""
    return text.rstrip(' "*\n').endswith(_MARKS)


def _in_state(state: Mapping[Any, Any], depth: int) -> str:
    # What a model said and what an index holds is not asked, whatever field is the only text in it.
    if "lc" in state or is_message_mapping(state) or is_document_mapping(state):
        return ""
    for name in (*ASKED_NAMES, *_MESSAGES, *_WRAPPERS):
        if name in _WRAPPERS and isinstance(state.get(name), str) and len(state) > 1:
            continue  # a text beside others, of which any may be the question
        if name in state and (found := asked_in(state[name], depth - 1)):
            return found
    only = next(iter(state.values())) if len(state) == 1 else None
    return asked_in(only, depth - 1) if isinstance(only, Mapping) else _named_alike(state)


def _named_alike(state: Mapping[Any, Any]) -> str:
    """The only text whose name ends as a question's does, or the last one of a conversation of any name."""
    texts = [one for name, one in state.items() if isinstance(one, str) and str(name).endswith(_ENDS)]
    told = (messages_in(one) for one in state.values() if isinstance(one, list))
    texts += [
        one for messages in told if messages and messages[-1].role == "user" for one in spoken(messages)[-1:]
    ]
    asked = {text.strip() for text in texts} - {""}
    return asked.pop() if len(asked) == 1 else ""
