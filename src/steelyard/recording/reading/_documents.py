"""Documents and nodes in what a step was given or returned, as objects or as their JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from steelyard.record import Context, text_of
from steelyard.recording.reading._shapes import attribute, is_document, state_of

_DEPTH = 5
_IDS = ("id", "id_", "_id", "node_id", "doc_id", "document_id", "chunk_id")
_SCORES = ("relevance_score", "rerank_score", "score", "_score", "similarity_score")


def documents_in(value: Any) -> list[Context]:
    """The documents in a value: one, a list, pairs with scores, parts of a state or of a response.

    Those without text are left out. Ranks count from 0.
    """
    found = (context for document in _documents(value, _DEPTH) if (context := _context(document)))
    return [replace(context, rank=rank) for rank, context in enumerate(found)]


def contexts_of(documents: Iterable[Any]) -> list[Context]:
    """What a retriever returned, in order: documents, nodes, mappings, texts; those without text left out."""
    found = (_context(document) or _plain(document) for document in documents)
    return [replace(one, rank=rank) for rank, one in enumerate(found) if one is not None]


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


def _context(document: Any) -> Context | None:
    scored = attribute(document, "node")
    node = document if scored is None else scored
    text = _text(node)
    if not text or text.isspace():
        return None
    metadata = attribute(node, "metadata")
    about = metadata if isinstance(metadata, Mapping) else {}
    own = attribute(node, "id" if scored is None else "node_id")
    names = (about[name] for name in _IDS if about.get(name) is not None)
    own = next(names, None) if own is None else own
    scores = (attribute(document, "score"), *(about.get(name) for name in _SCORES))
    return Context(
        text=text,
        id=own if own is None or type(own) is str else text_of(own),
        score=next((score for one in scores if (score := _number(one)) is not None), None),
    )


def _text(node: Any) -> str:
    text = attribute(node, "page_content")
    if text is None and is_document(node):
        text = attribute(node, "text")
    return text if type(text) is str else text_of(text)


def _plain(value: Any) -> Context | None:
    """A passage that is a text, or a mapping with one."""
    if isinstance(value, str):
        return Context(text=text_of(value)) if value.strip() else None
    if not isinstance(value, Mapping):
        return None
    text = next((value[key] for key in ("page_content", "text", "content") if value.get(key)), None)
    if not isinstance(text, str) or not text.strip():
        return None
    own = next((value[name] for name in _IDS if value.get(name) is not None), None)
    scores = (_number(value.get(name)) for name in _SCORES)
    return Context(
        text=text_of(text),
        id=None if own is None else text_of(own),
        score=next((one for one in scores if one is not None), None),
    )


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, (bool, str)):
        return None
    try:
        number = float(value)  # numpy's numbers among them
    except (TypeError, ValueError, OverflowError):
        return None  # an array of several, say, is not a score
    return number if math.isfinite(number) else None
