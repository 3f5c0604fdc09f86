"""Passages in what a tool returned: lists of texts or objects, content blocks, wrapped or not."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.record import Context
from steelyard_opentelemetry._documents import documents_in
from steelyard_opentelemetry._payload import decode

__all__ = ["fields_with_passages", "listed_in", "parts_of"]

_DEPTH = 8
_FEWEST_WORDS = 3
_MOST_SHOWN = 50_000
_WRAPPERS = (
    *("raw_output", "artifact", "data", "kwargs", "output", "result", "results", "documents", "docs", "hits"),
    *("matches", "chunks", "passages", "retrievalResults", "items", "value", "content", "blocks", "messages"),
)
_TEXTS = (
    "page_content",
    "pageContent",
    "content",
    "text",
    "chunk",
    "chunk_text",
    "passage",
    "document",
    "body",
)
_SCORES = ("score", "relevance_score", "similarity", "similarity_score", "distance", "_score")
_FIELDS = ("context", "contexts", "documents", "docs", "passages", "chunks")
_RULED = re.compile(
    r"^[ \t]*(?:={2,}|-{2,}|#{1,4}|\*{2,})[ \t]*(?:document|doc|source|passage|chunk|result)"
    r"[ \t]*#?\d{1,4}\b[^\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING = re.compile(r"^#{1,4} \S", re.MULTILINE)


def listed_in(result: object, depth: int = _DEPTH) -> tuple[Context, ...]:
    """The passages of a result that is a list, whatever it is wrapped in; nothing where it is none.

    Lists of texts count from three words a text on, objects by a key that is known to hold a text, or by
    a score beside their longest text.
    """
    value = _opened(result)
    if depth <= 0:
        return ()
    if isinstance(value, Mapping):
        inner = (value[key] for key in _WRAPPERS if isinstance(value.get(key), (list, tuple, Mapping, str)))
        return next((found for part in inner if (found := listed_in(part, depth - 1))), ())
    if not isinstance(value, (list, tuple)) or not value:
        return ()
    if all(isinstance(item, str) for item in value):
        texts = [item.strip() for item in value if item.strip()]
        return tuple(Context(text=text) for text in texts) if all(map(_long, texts)) else ()
    if all(isinstance(item, Mapping) for item in value):
        return _objects(value, depth)
    return ()


def _opened(value: object) -> Any:
    """A text as what it stands for: JSON, or a list as Python shows it."""
    value = decode(value)
    if isinstance(value, str) and value.lstrip().startswith(("[", "(")) and len(value) <= _MOST_SHOWN:
        try:
            return ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
    return value


def _objects(items: Sequence[Mapping[str, Any]], depth: int) -> tuple[Context, ...]:
    if any(_is_tool_message(item) for item in items):
        told = (listed_in(item, depth - 1) for item in items if _is_tool_message(item))
        return tuple(context for found in told for context in found)
    blocks = [item for item in items if (item.get("type") or item.get("block_type")) == "text"]
    if len(blocks) == 1 and len(items) == 1:
        return listed_in(blocks[0].get("text"), depth - 1)
    found = [context for item in items if (context := _object(item))]
    return tuple(found) if len(found) == len(items) or (blocks and found) else ()


def _is_tool_message(item: Mapping[str, Any]) -> bool:
    return "tool" in (item.get("type"), item.get("role"))


def _object(item: Mapping[str, Any]) -> Context | None:
    """A passage out of one object, with its id and score."""
    given = (item.get(key) for key in _TEXTS)
    texts = (value.get("text") if isinstance(value, Mapping) else value for value in given)
    text = next((value.strip() for value in texts if isinstance(value, str) and value.strip()), "")
    if not text and any(key in item for key in _SCORES):
        text = max((value for value in item.values() if isinstance(value, str)), key=len, default="")
    if not text or not _long(text):
        return None
    rest = {key: value for key, value in item.items() if key not in _TEXTS and key != "node"}
    return documents_in({"page_content": text, **rest})[0]


def _long(text: str) -> bool:
    """Whether this can be a passage; languages without spaces count by character."""
    return len(text.split()) >= _FEWEST_WORDS or len(text) > 12 and not text.isascii()


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of a text that is headed part by part; nothing where it is not.

    A ruled heading with a number (`===== Document 0 =====`) is not part of the passage below it, a heading
    with words of its own (`# Chains`) is.
    """
    ruled = [match.end() for match in _RULED.finditer(text)]
    if ruled:
        ends = [match.start() for match in _RULED.finditer(text)][1:] + [len(text)]
        return tuple(filter(None, (text[a:b].strip() for a, b in zip(ruled, ends, strict=True))))
    starts = [match.start() for match in _HEADING.finditer(text)]
    if len(starts) < 2 or text[: starts[0]].strip():
        return ()
    return tuple(text[a:b].strip() for a, b in zip(starts, [*starts[1:], len(text)], strict=True))


def fields_with_passages(payload: object) -> tuple[Context, ...]:
    """A list of texts under a name that means contexts, among the fields of a step."""
    value = decode(payload)
    if not isinstance(value, Mapping):
        return ()
    lists = (value[name] for name in _FIELDS if isinstance(value.get(name), (list, tuple)))
    return next((found for items in lists if (found := listed_in(items))), ())
