"""Documents and nodes in what a step was given or returned, as objects or as their JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steelyard.record import Context, text_of
from steelyard.recording.reading._names import (
    DOCUMENT_TEXT,
    DOCUMENT_TEXTS,
    PASSAGE_IDS,
    PASSAGE_SCORES,
    text_under,
)
from steelyard.recording.reading._shapes import attribute, is_document, state_of

_DEPTH = 5


def documents_in(value: Any) -> list[Context]:
    """The documents in a value: one, a list, pairs with scores, parts of a state or of a response.

    Those without text are left out. Ranks count from 0.
    """
    found: list[Context] = []
    for document in _documents(value, _DEPTH):
        if (one := _context(document, len(found))) is not None:
            found.append(one)
    return found


def contexts_of(documents: Iterable[Any]) -> list[Context]:
    """What a retriever returned, in order: documents, nodes, mappings, texts; those without text left out.

    Ranks count these, too.
    """
    found = (_context(one, rank) or _plain(one, rank) for rank, one in enumerate(documents))
    return [one for one in found if one is not None]


def _documents(value: Any, depth: int) -> Iterator[Any]:
    if value is None or isinstance(value, (str, bytes, int, float)) or depth <= 0:
        return
    if is_document(value) or is_document(attribute(value, "node")):
        yield value
        return
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        parts: Iterable[Any] = value
    elif (state := state_of(value)) is not None:
        parts = state.values()
    else:
        parts = (attribute(value, "source_nodes"), attribute(value, "raw_output"))
    for part in parts:
        if not isinstance(part, (str, int, float)):
            yield from _documents(part, depth - 1)


def _context(document: Any, rank: int) -> Context | None:
    # Asking a pydantic object for what it lacks is slow, and LangChain's documents have no node.
    scored = None if attribute(document, DOCUMENT_TEXT) is not None else attribute(document, "node")
    node = document if scored is None else scored
    text = _text(node)
    if not text or text.isspace():
        return None
    metadata = attribute(node, "metadata")
    about = metadata if isinstance(metadata, Mapping) else {}
    own = attribute(node, "id" if scored is None else "node_id")
    return _with_names(text, own, about, attribute(document, "score"), rank)


def _text(node: Any) -> str:
    text = attribute(node, DOCUMENT_TEXT)
    if text is None and is_document(node):
        text = attribute(node, "text")
    return text if type(text) is str else text_of(text)


def _plain(value: Any, rank: int) -> Context | None:
    """A passage that is a text, or a mapping with one."""
    if isinstance(value, str):
        return Context(text=text_of(value), rank=rank) if value.strip() else None
    if not isinstance(value, Mapping):
        return None
    text = text_under(value, (*DOCUMENT_TEXTS, "text", "content"))
    if text is None or not text.strip():
        return None
    return _with_names(text_of(text), None, value, None, rank)


def _with_names(text: str, own: Any, about: Mapping[Any, Any], score: Any, rank: int) -> Context:
    """A passage with its own id and score, or with what stands about it under a known name."""
    if own is None:
        own = next((about[name] for name in PASSAGE_IDS if about.get(name) is not None), None)
    scores = (score, *(about.get(name) for name in PASSAGE_SCORES))
    return Context(
        text=text,
        id=None if own is None else text_of(own),
        score=next((number for one in scores if (number := _number(one)) is not None), None),
        rank=rank,
    )


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, (bool, str)):
        return None
    try:
        number = float(value)  # numpy's numbers among them
    except (TypeError, ValueError, OverflowError):
        return None  # an array of several, say, is not a score
    return number if math.isfinite(number) else None
