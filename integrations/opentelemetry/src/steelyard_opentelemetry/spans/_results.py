"""What a tool returned, out of the messages and outputs that frameworks put around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.recording.reading import read_shown
from steelyard_opentelemetry.spans._payload import Broken, decode, loaded

_AROUND = ("output", "tool_output", "raw_output", "update", "messages", "kwargs")
_PARTS = frozenset(("content", "isError", "meta", "blocks"))
_MOST_WRAPPERS = 6


def unwrapped(result: object) -> Any:
    """What a tool returned, without the messages and outputs that frameworks put around it."""
    value = _opened(result)
    for _ in range(_MOST_WRAPPERS):
        inner = _inside(value)
        if inner is None or inner == "":
            break
        value = _opened(inner)
    if _is_single_text(value):
        value = _opened(value[0]["text"])
    if isinstance(value, str) and value[:1] in ("[", "{"):
        shown = read_shown(value)
        # Rows of a table stay the text that the model was told.
        if isinstance(shown, list) and shown and all(isinstance(one, (str, Mapping)) for one in shown):
            value = shown
    return value


def _opened(value: object) -> Any:
    """A value decoded once: what looks like JSON inside of a tool's own JSON is the text of a passage."""
    found = decode(value)
    return value if isinstance(found, Broken) else found


def has_failed(result: object) -> bool:
    """Whether a tool's message or output says that it failed."""
    waiting = [loaded(result)]
    for value in waiting:  # it grows on the way
        if isinstance(value, (list, tuple)):
            waiting += value[:_MOST_WRAPPERS]
        elif isinstance(value, Mapping):
            if value.get("status") == "error" or True in (value.get("isError"), value.get("is_error")):
                return True
            waiting += [value[key] for key in (*_AROUND, "data") if key in value]
    return False


def _inside(value: Any) -> Any:
    """What stands in a message or in an output; None where this is neither."""
    if isinstance(value, (list, tuple)):
        is_said = bool(value) and all(map(_is_tool_message, value))
        return _contents(value) if is_said else None
    if not isinstance(value, Mapping):
        return None
    inner = next((value[key] for key in _AROUND if key in value), None)
    is_wrapped = inner is None and (_is_tool_message(value) or set(value) <= _PARTS)
    return _content(value) if is_wrapped else inner


def _contents(messages: Sequence[Mapping[str, Any]]) -> Any:
    """What several messages of tools hold, as one list."""
    found = [_opened(_content(message)) for message in messages]
    if len(found) == 1:
        return found[0]
    return [part for each in found for part in (each if isinstance(each, list) else [each])]


def _is_tool_message(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return "tool" in (value.get("type"), value.get("role")) or "tool_call_id" in value


def _content(message: Mapping[str, Any]) -> Any:
    data = message.get("data", message.get("kwargs"))
    place = data if isinstance(data, Mapping) and "content" in data else message
    return place.get("content", place.get("blocks"))


def _is_single_text(value: Any) -> bool:
    """Whether a content has one text block, in which anything may stand."""
    if not isinstance(value, (list, tuple)) or len(value) != 1 or not isinstance(value[0], Mapping):
        return False
    block = value[0]
    is_text = "text" in (block.get("type"), block.get("block_type")) or set(block) == {"text"}
    return is_text and isinstance(block.get("text"), str)
