"""Quick looks at SDK spans, cheap enough for the application's own thread."""

from __future__ import annotations

from typing import Any

_KIND_KEYS = ("openinference.span.kind", "gen_ai.operation.name", "traceloop.span.kind")
_KINDS = frozenset({"RETRIEVER", "RERANKER", "retrieval", "vector_db_retrieve", "rerank"})


def is_local_root(span: Any) -> bool:
    """Whether a span has no parent in this process."""
    return span.parent is None or span.parent.is_remote


def retrieves(span: Any) -> bool:
    """Whether a span says, in any dialect, that something was retrieved in it."""
    attributes = span.attributes or {}
    if any(attributes.get(key) in _KINDS for key in _KIND_KEYS):
        return True
    if any(key.startswith(("retrieval.", "gen_ai.retrieval.", "steelyard.")) for key in attributes):
        return True
    if "retrieve" in span.name.lower():
        return True
    return any(event.name in ("RetrievalEndEvent", "ReRankEndEvent") for event in span.events)
