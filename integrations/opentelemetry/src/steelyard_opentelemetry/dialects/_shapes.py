"""The shapes in which frameworks write messages, texts and documents, beside the usual ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steelyard.record import Context
from steelyard.recording.reading import (
    Message,
    arguments_in,
    messages_in,
    text_in,
    texts_of,
)
from steelyard_opentelemetry._payload import (
    Broken,
    answer_in,
    as_messages,
    decode,
    mappings_in,
    named,
    opened,
)

DELTA = "StreamChatDeltaReceivedEvent"
"""LlamaIndex's event for a piece of a streamed reply."""
_STARTED = ("user_msg", "query", "question", "input", "message", "prompt")
_BETWEEN = re.compile(r'",\s?"')


_WRAPPERS = frozenset(("message", "message_content", "tool_call", "document", "prompt"))
"""Names that OpenInference puts around the fields of each entry of a list."""
_DEEPEST = 8


def unflattened(attributes: Mapping[str, Any], prefix: str, without: object = None) -> Any:
    """What is flattened into attributes below a prefix, as the list or the object that it was, else None.

    >>> unflattened({"sent.0.message.role": "user", "sent.0.message.contents.0.text": "?"}, "sent.")
    [{'role': 'user', 'contents': [{'text': '?'}]}]
    """
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if key.startswith(prefix) and value != without:
            *path, last = key[len(prefix) :].split(".", _DEEPEST)
            place: Any = tree
            for name in path:
                if name not in _WRAPPERS:
                    place = place.setdefault(name, {}) if isinstance(place, dict) else None
            if isinstance(place, dict):
                place[last] = value
    return _as_list(tree) or None


def _as_list(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if all(name.isdecimal() for name in tree):
        return [_as_list(value) for _, value in sorted(tree.items(), key=lambda item: int(item[0][:9]))]
    return {name: _as_list(value) for name, value in tree.items()}


def messages_of(value: object) -> tuple[Message, ...]:
    """Messages in any of the usual forms, or the texts that a completion model was sent."""
    if isinstance(value, str):
        return as_messages(value) or _prompts([value] if value.strip() else [])
    items = list(value) if isinstance(value, (list, tuple)) else []
    return _prompts(items) or messages_in([_message(item) for item in items] or value)


def _prompts(items: list[Any]) -> tuple[Message, ...]:
    """Texts, or objects that hold nothing else, as what a user said each."""
    texts = [item.get("text") if isinstance(item, Mapping) and len(item) == 1 else item for item in items]
    found = tuple(Message("user", text) for text in texts if isinstance(text, str))
    return found if len(found) == len(items) else ()


_AS_THEY_ARE = ("type", "parts", "blocks", "kwargs")


def _message(item: object) -> object:
    """A message that was flattened as it would be otherwise: its parts, and what a function returned."""
    if not isinstance(item, Mapping) or not item.keys().isdisjoint(_AS_THEY_ARE):
        return item
    content = item.get("content") or item.get("contents")
    content = _returned(item.get("function")) if content is None else _parts(content)
    if content is None:
        return {**item, "content": []} if item.get("role") == "tool" else item
    return {**item, "role": item.get("role") or "user", "content": content}


def _parts(content: Any) -> Any:
    """The parts of a message where they were written as JSON, else the content as it is."""
    parts = decode(content)
    is_parts = isinstance(parts, list) and all(isinstance(part, Mapping) and "type" in part for part in parts)
    return parts if is_parts else content


def _returned(results: Any) -> Any:
    """What a function returned, where a message keeps it beside its content, as JSON."""
    found = [decode(result) for result in results] if isinstance(results, list) else []
    last = found[-1] if found else None
    return last.get("content") if isinstance(last, Mapping) else None


def arguments_of(value: object) -> tuple[str, ...]:
    """What a model called tools with in its reply; forms that it filled in are among them."""
    calls = [call for item in mappings_in(value) for call in mappings_in(item.get("tool_calls"))]
    given = mappings_in([call.get("function", call) for call in calls])
    texts = (one.get("arguments") for one in given)
    return (*arguments_in(value), *(text for text in texts if isinstance(text, str)))


def as_is(value: Any) -> Any:
    """A value that may look like JSON, and is read where it is used."""
    return value


def nothing(value: object) -> str:
    """No text."""
    return ""


def json_value(value: object) -> Any:
    """JSON whatever it holds, a text in quotes too."""
    if not (isinstance(value, str) and value.startswith('"')):
        return decode(value)
    found = decode(f"[{value}]")
    return value if isinstance(found, Broken) else found[0]


def text_list(value: object) -> list[str] | None:
    """The texts of a list; where it was written as one text, that is JSON, or nothing in it is escaped."""
    value = opened(value)
    if isinstance(value, (list, tuple)):
        return [text.strip() for text in value if isinstance(text, str) and text.strip()]
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text in ("", "[]"):
        return []
    if not (text.startswith('["') and text.endswith('"]')):
        return [text]
    return [part.strip() for part in _BETWEEN.split(text[2:-2]) if part.strip()]


def texts_as_messages(texts: list[str] | None) -> tuple[Message, ...]:
    """Messages without roles: the last text is taken for the user's, anything before it for the system's."""
    found = texts or []
    return tuple(Message("user" if text is found[-1] else "system", text) for text in found)


def text_as_messages(value: object) -> tuple[Message, ...]:
    """Several messages in one text: who said what is not told; only a single line is surely the user's."""
    text = value.strip() if isinstance(value, str) else ""
    return (Message("system" if "\n" in text else "user", text),) if text else ()


def gemini_messages(asked: object) -> tuple[Message, ...]:
    """The messages in a request to Gemini, which keeps its instructions apart."""
    if not isinstance(asked, Mapping):
        return ()
    config = asked.get("config")
    system = text_in(config.get("system_instruction")) if isinstance(config, Mapping) else ""
    # What tools returned is told by spans of their own.
    said = [
        Message("user", one.text) if one.role == "tool" else one for one in messages_in(asked.get("contents"))
    ]
    return (Message("system", system), *said) if system else tuple(said)


def blocks_or_text(came: object) -> str:
    """A reply in the blocks of a message, or as a text."""
    blocks = decode(came)
    if not (isinstance(blocks, list) and all(isinstance(block, Mapping) for block in blocks)):
        return answer_in(came)
    return as_messages([{"role": "assistant", "blocks": blocks}])[0].text


def asked_at_start(shown: object) -> str:
    """The question in a workflow's first event, as Python shows it."""
    return named(shown, _STARTED) if isinstance(shown, str) and "StartEvent(" in shown else ""


def by_ranking(listed: object, ranking: object) -> tuple[Context, ...]:
    """Documents in the order of a ranking that names them by their index, with its scores."""
    if not isinstance(listed, (list, tuple)) or not isinstance(ranking, (list, tuple)):
        return ()
    texts = ["\n".join(texts_of(json_value(item))) for item in listed]
    found: list[Context] = []
    for entry in map(json_value, ranking):
        index = entry.get("index") if isinstance(entry, Mapping) else None
        if isinstance(index, int) and 0 <= index < len(texts):
            score = entry.get("relevanceScore")
            number = float(score) if isinstance(score, (int, float)) and abs(score) < 2**63 else None
            found.append(Context(text=texts[index], score=number))
    return tuple(found)
