"""Passages in values: lists of texts, documents, nodes, search hits, and what wraps them."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from steelyard.record import Context, text_of

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
    *("content_preview", "text_preview"),
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


Split = Callable[[str], tuple[Context, ...]]

# Search services nest hits in results in responses; values deeper than this are cycles.
_DEPTH = 8
_SCALARS = (str, int, float, type(None))
_CELL = 20
"""Characters of the cells of a row; a passage has more."""
_CELL_WORDS = 12
_LONGEST_CELL = 100
_ENDS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f")
_INSIDE = (
    *("kwargs", "node", "text_resource", "_source", "payload", "properties", "entity", "document", "content"),
    *("fields", "metadata", "chunk"),
)
_LISTS = (
    *("documents", "docs", "nodes", "source_nodes", "source_documents", "results", "passages", "chunks"),
    *("blocks", "matches", "hits", "items", "contexts", "context", "retrieved_documents", "retrievalResults"),
    *("organic", "organic_results", "webPages", "value", "points", "data", "artifact", "raw_output"),
    "outputs",
    *("output", "result", "response", "sources", "args", "content", "objects", "records", "rows", "entries"),
)
_HOLDS_SEVERAL = re.compile(
    r"\s{0,40}(?:[\[{]|<(?:document|doc|passage|chunk|result|snippet|source|context)s?\b[^<>]{0,2000}>)",
    re.IGNORECASE,
)


def contexts_in(value: object, split: Split, depth: int = _DEPTH) -> tuple[Context, ...]:
    """The passages in a value, in order; none where it holds no text in a known place.

    Args:
        value: JSON, or objects read as mappings.
        split: What splits a text that stands for several passages, such as a tool's only text block.
        depth: How many levels are looked into.
    """
    if depth <= 0 or value is None:
        return ()
    if isinstance(value, str):
        return split(value)
    if isinstance(value, Mapping):
        one = _context(value)
        if one is not None:
            # A message's only text block holds all that a tool returned, so it is cut like a text.
            return split(one.text) if _is_block(value) else (one,)
        return next(
            (
                found
                for key in _LISTS
                if key in value and (found := contexts_in(value[key], split, depth - 1))
            ),
            (),
        )
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return _listed(value, split, depth)
    return ()


def _listed(values: Sequence[Any], split: Split, depth: int) -> tuple[Context, ...]:
    pair = _pair(values)
    if pair is not None:
        return (pair,)
    if _is_row(values):
        return ()
    if _are_records(values, split, depth):
        return tuple(Context(text=json.dumps(value, ensure_ascii=False, default=str)) for value in values)
    if len(values) == 1:
        return contexts_in(values[0], split, depth - 1)
    return tuple(itertools.chain.from_iterable(_one(value, split, depth) for value in values))


def _are_records(values: Sequence[Any], split: Split, depth: int) -> bool:
    """Whether a list has rows that say something, of which no field is known for its text.

    What the fields of a row say belongs together, so that each row stays whole.
    """
    if all(isinstance(value, Mapping) for value in values):
        return all(_says_something(value) and not contexts_in(value, split, depth - 1) for value in values)
    return all(map(_is_flat, values)) and any(map(_has_one_text, values))


def _is_flat(value: object) -> bool:
    """Whether a value is a row of several cells, rather than a passage with its score."""
    if not isinstance(value, (list, tuple)) or len(value) < 2 or _pair(value) is not None:
        return False
    return all(isinstance(one, (*_SCALARS, bool)) for one in value)


def _has_one_text(row: Sequence[object]) -> bool:
    """Whether one text of a row is longer than a cell; several are a list of passages."""
    return sum(isinstance(one, str) and not _is_cell(one) for one in row) == 1


def _says_something(value: object) -> bool:
    if isinstance(value, str):
        return len(value) > _CELL and not _is_code(value)
    parts = value.values() if isinstance(value, Mapping) else value
    return isinstance(parts, Iterable) and any(map(_says_something, parts))


def _is_code(text: str) -> bool:
    """Whether a text is an id, an address or a name rather than words."""
    return text.isascii() and not any(map(str.isspace, text.strip()))


def _one(value: object, split: Split, depth: int) -> Iterator[Context]:
    """An entry of a list: a text is one passage, however many paragraphs it has."""
    if not isinstance(value, str):
        yield from contexts_in(value, split, depth - 1)
    elif value.strip():
        # A text in a list is one passage, unless it is JSON, or documents that a step has put between tags.
        found = split(value) if _HOLDS_SEVERAL.match(value) else ()
        is_several = len(found) > 1 or not value.lstrip().startswith("{")
        # A printed row stays whole: its cells are no passages.
        is_several = is_several and any(len(one.text) > _CELL for one in found)
        yield from found if is_several else (Context(text=text_of(value.strip())),)


def _is_row(values: Sequence[Any]) -> bool:
    """Whether a list is a row of a table: a number beside names, of which none is a sentence."""
    texts = [one for one in values if isinstance(one, str)]
    is_flat = all(one is None or isinstance(one, (str, bool)) or number_of(one) is not None for one in values)
    return is_flat and 0 < len(texts) < len(values) and all(map(_is_cell, texts))


def _is_cell(text: str) -> bool:
    # Languages without spaces have few words by these.
    is_short = len(text.split()) <= _CELL_WORDS and len(text) <= _LONGEST_CELL
    return is_short and "\n" not in text and not text.rstrip().endswith(_ENDS)


def _pair(values: Sequence[Any]) -> Context | None:
    """A passage and its score, as searches return them."""
    if len(values) != 2 or (score := number_of(values[1])) is None or _is_row(values):
        return None
    first = values[0]
    one = _context(first) if isinstance(first, Mapping) else None
    if isinstance(first, str) and first.strip():
        one = Context(text=text_of(first.strip()))
    if one is None or not one.text:
        return None
    return Context(text=one.text, id=one.id, score=score if one.score is None else one.score)


def _is_block(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a text block of a message, rather than a passage."""
    # A block with an id of its own is a passage of some index.
    return value.get("type") in ("text", "output_text") and not any(key in value for key in PASSAGE_IDS[1:6])


def _context(value: Mapping[Any, Any]) -> Context | None:
    text = _text(value, 4)
    if not text:
        return None
    places = list(_places(value))
    ids = (place.get(key) for place in places for key in PASSAGE_IDS)
    scores = (number_of(place.get(key)) for place in places for key in PASSAGE_SCORES)
    identity = next((found for found in ids if isinstance(found, (str, int)) and found != ""), None)
    return Context(
        text=text_of(text),
        id=None if identity is None else text_of(identity),
        score=next((score for score in scores if score is not None), None),
    )


def _places(value: Mapping[Any, Any]) -> Iterator[Mapping[Any, Any]]:
    yield value
    for key in _INSIDE:
        if isinstance(inner := value.get(key), Mapping):
            yield inner
            if isinstance(below := inner.get("metadata"), Mapping):
                yield below


def _text(value: Mapping[Any, Any], depth: int) -> str:
    for key in PASSAGE_TEXTS:
        if isinstance(text := value.get(key), str) and text.strip():
            return text.strip()
    if depth > 0:
        for key in _INSIDE:
            if isinstance(inner := value.get(key), Mapping) and (text := _text(inner, depth - 1)):
                return text
    return ""


def number_of(value: object) -> float | None:
    """A finite number, numpy's among them; None for all else."""
    if value is None or isinstance(value, (bool, str)):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None  # an array of several, say, is not a score
    return number if math.isfinite(number) else None
