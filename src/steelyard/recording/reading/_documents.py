"""Documents and nodes in what a step was given or returned, as objects or as their JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from steelyard.record import Context, text_of
from steelyard.recording.reading._shapes import attribute, is_document, state_of
from steelyard.recording.reading._values import (
    DOCUMENT_TEXT,
    DOCUMENT_TEXTS,
    PASSAGE_IDS,
    PASSAGE_SCORES,
    number_of,
    text_under,
)


def unique(contexts: Iterable[Context]) -> tuple[Context, ...]:
    """The first of each passage, in order. The same passage has the same text; ids of stores may collide."""
    found: dict[str, Context] = {}
    for context in contexts:
        found.setdefault(context.text, context)
    return tuple(found.values())


_DEPTH = 5


def documents_in(value: Any, *, known: Collection[str] = ()) -> list[Context]:
    """The documents in a value: one, a list, pairs with scores, parts of a state or of a response.

    Those without text are left out, and those whose text is known. Ranks count from 0, and count these, too.
    """
    told = ((one, text) for one in _documents(value, _DEPTH) if (text := _told(one)))
    # A document passes through many steps: what it says beside its text is read once.
    return [_context(one, text, rank) for rank, (one, text) in enumerate(told) if text.strip() not in known]


def has_documents(value: Any) -> bool:
    """Whether there are any with text."""
    return any(map(_told, _documents(value, _DEPTH)))


def contexts_of(documents: Iterable[Any]) -> list[Context]:
    """What a retriever returned, in order: documents, nodes, mappings, texts; those without text left out.

    Ranks count these, too.
    """
    found = (
        _context(one, text, rank) if (text := _told(one)) else _plain(one, rank)
        for rank, one in enumerate(documents)
    )
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


def _node(document: Any) -> Any:
    # Asking a pydantic object for what it lacks is slow, and LangChain's documents have no node.
    scored = None if attribute(document, DOCUMENT_TEXT) is not None else attribute(document, "node")
    return document if scored is None else scored


def _told(document: Any) -> str:
    """What a document says; empty if it has no text."""
    text = _text(_node(document))
    return "" if text.isspace() else text


def _context(document: Any, text: str, rank: int) -> Context:
    node = _node(document)
    metadata = attribute(node, "metadata")
    about = metadata if isinstance(metadata, Mapping) else {}
    own = attribute(node, "id" if node is document else "node_id")
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
        score=next((number for one in scores if (number := number_of(one)) is not None), None),
        rank=rank,
    )
