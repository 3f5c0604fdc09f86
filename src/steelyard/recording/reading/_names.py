"""The names that frameworks and stores give to the parts of a turn: each list of them stands here alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

DOCUMENT_TEXT = "page_content"
"""Where LangChain's documents have their text; nothing else has that name."""

DOCUMENT_TEXTS = (DOCUMENT_TEXT, "pageContent")
"""The same in Python and in JavaScript."""

NODE_TEMPLATES = ("text_template", "metadata_template")
"""What LlamaIndex's nodes keep beside their text: how they are printed."""

PASSAGE_TEXTS = (
    *DOCUMENT_TEXTS,
    *("content", "text", "document", "chunk", "passage", "body", "snippet", "raw_content"),
    *("chunk_text", "page_text", "excerpt", "abstract", "answer_text", "document_content", "contents"),
)
"""Where passages have their text, in order of trust: "content" may also be a wrapper."""

PASSAGE_IDS = ("id", "id_", "node_id", "doc_id", "document_id", "chunk_id", "_id", "uuid")
"""Where passages have their id, their own before their document's."""

PASSAGE_SCORES = (
    *("relevance_score", "rerank_score", "score", "_score", "similarity_score", "similarity", "distance"),
)
"""Where passages have their score; a reranker's, which came last, before a search's."""

ANSWERS = (
    *("answer", "final_answer", "final_response", "output", "output_text", "response", "result"),
    *("generation", "completion"),
)
"""What applications call their answer; what says "answer" itself comes first."""


def is_document_mapping(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a document of LangChain, as its fields."""
    return any(name in value for name in DOCUMENT_TEXTS)


def is_node_mapping(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a node of LlamaIndex, as its fields."""
    return "text" in value and any(name in value for name in NODE_TEMPLATES)


def text_under(value: Mapping[Any, Any], names: Iterable[str]) -> str | None:
    """The first text under one of these names; None if none holds a text."""
    return next((value[name] for name in names if isinstance(value.get(name), str)), None)
