"""What a tool returned: passages, where it is a list of them, whatever it is wrapped in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.record import Context
from steelyard.recording.provenance import passages_of
from steelyard_opentelemetry.spans._payload import Broken, decode

_SCORES = ("score", "relevance_score", "similarity", "similarity_score", "distance", "_score")
_AROUND = ("output", "tool_output", "raw_output", "messages", "kwargs")
_PARTS = frozenset(("content", "isError", "meta", "blocks"))
_FAILURE = re.compile(
    r"\s{0,8}(?:(?:[\w.]{1,80}\.)?\w{0,60}(?:Error|Exception)\s?[:(]"
    r"|(?:An |Encountered |There was an )?error\b[^\n]{0,60}(?:\btool\b|:)"
    r"|Failed to (?:call|execute|invoke|run)\b)",
    re.IGNORECASE,
)
_TRACEBACK = "Traceback (most recent call last):"
_LONGEST_FAILURE = 600
_MOST_WRAPPERS = 6
_FEWEST_WORDS = 3
_FEWEST_CHARACTERS = 12


def listed(result: object) -> tuple[Context, ...]:
    """The passages of a result that is a list, whatever it is wrapped in; nothing where it is one text.

    What a tool says in one text may be anything; a list of texts or of objects with a text is a search's.
    """
    value = _without_message(decode(result))
    if isinstance(value, str):
        return _in_literal(value)
    if isinstance(value, Mapping) and not any(isinstance(v, (list, tuple, dict)) for v in value.values()):
        return ()
    if _is_single_text(value):
        return listed(value[0]["text"])
    return telling(passages_of(value) or _scored(value))


def telling(found: tuple[Context, ...]) -> tuple[Context, ...]:
    """The passages, where each is long enough to be one."""
    return found if all(is_long(one.text) for one in found) else ()


def is_failure(text: str) -> bool:
    """Whether a tool's whole result is an error's message, as frameworks hand it to the model."""
    return _TRACEBACK in text[:_LONGEST_FAILURE] or (
        len(text) <= _LONGEST_FAILURE and _FAILURE.match(text) is not None
    )


def is_long(text: str) -> bool:
    """Whether a text has words enough for a passage; languages without spaces count by character."""
    return len(text.split(None, _FEWEST_WORDS)) >= _FEWEST_WORDS or (
        len(text) > _FEWEST_CHARACTERS and not text.isascii()
    )


def _in_literal(value: str) -> tuple[Context, ...]:
    """The passages in a list that is shown as text."""
    if value.lstrip()[:1] not in ("[", "(", "{"):
        return ()
    found = passages_of(value)
    return () if [one.text for one in found] == [value.strip()] else telling(found)


def _scored(value: object) -> tuple[Context, ...]:
    """Rows of a search whose text stands under a name of its own: the longest text beside a score."""
    rows = value if isinstance(value, (list, tuple)) else ()
    if not rows or not all(isinstance(row, Mapping) and any(key in row for key in _SCORES) for row in rows):
        return ()
    texts = [max((v for v in row.values() if isinstance(v, str)), key=len, default="") for row in rows]
    return passages_of([{**row, "text": text} for row, text in zip(rows, texts, strict=True)])


def _is_single_text(value: Any) -> bool:
    """Whether a content has one text block, in which anything may stand."""
    if not isinstance(value, (list, tuple)) or len(value) != 1 or not isinstance(value[0], Mapping):
        return False
    block = value[0]
    is_text = "text" in (block.get("type"), block.get("block_type")) or set(block) == {"text"}
    return is_text and isinstance(block.get("text"), str)


def _without_message(value: Any) -> Any:
    """What a tool returned, without the messages and outputs that frameworks put around it."""
    for _ in range(_MOST_WRAPPERS):
        inner = _inside(value)
        if inner is None or inner == "":
            break
        value = decode(inner)
    return None if isinstance(value, Broken) else value


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
    found = [decode(_content(message)) for message in messages]
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
