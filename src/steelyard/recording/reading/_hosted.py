"""What a model's provider searched by itself, while it answered: the reply holds what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.recording.reading._messages import Message
from steelyard.recording.reading._passages import passages_of
from steelyard.recording.reading._shapes import attribute

_SEARCHES = ("search_call", "search_result", "search_tool_result")
_RESULTS = ("results", "result", "content", "output")
_LISTS = ("output", "content", "tool_outputs")
_DEPTH = 3


def searched_by_provider(reply: Any) -> tuple[Message, ...]:
    """What hosted searches found, as the messages of tools that the provider showed to the model.

    Results without texts, such as addresses alone, are left out.

    >>> found = {"type": "file_search_call", "results": [{"file_id": "f", "text": "Rome has seven hills."}]}
    >>> [one.text for one in searched_by_provider({"output": [found]})]
    ['Rome has seven hills.']
    """
    found = []
    for kind, results in _results(reply, _DEPTH):
        texts = [one.text for one in passages_of(results) if one.text]
        if texts:
            found.append(Message("tool", "\n\n".join(texts), results, kind))
    return tuple(found)


def _results(value: Any, depth: int) -> Iterator[tuple[str, list[Any]]]:
    if isinstance(value, (list, tuple)):
        for one in value if depth else ():
            yield from _results(one, depth - 1)
        return
    fields = value if isinstance(value, Mapping) else _fields(value)
    kind = fields.get("type")
    if isinstance(kind, str) and kind.endswith(_SEARCHES):
        held = next((one for name in _RESULTS if isinstance(one := fields.get(name), list)), [])
        yield kind, [one for one in held if isinstance(one, Mapping)]
        return
    for name in _LISTS:
        if isinstance(inner := fields.get(name), (list, tuple)) and depth:
            yield from _results(inner, depth - 1)


def _fields(message: Any) -> Mapping[str, Any]:
    """The parts of a message of LangChain that may hold what was found."""
    extra = attribute(message, "additional_kwargs")
    beside = extra.get("tool_outputs") if isinstance(extra, Mapping) else None
    return {"content": attribute(message, "content"), "tool_outputs": beside}
