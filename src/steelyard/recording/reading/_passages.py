"""The passages in a value: its documents and nodes, or what JSON, Python's form or XML divides.

A text without such structure is one passage. Blank lines, numbers and rules stand within passages as often as
between them, so that nothing is divided there. What a model's provider searched by itself, while it answered,
is in the reply.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from steelyard.record import Context, text_of
from steelyard.recording.reading._literals import read_shown
from steelyard.recording.reading._messages import Message
from steelyard.recording.reading._shapes import attribute, is_document, state_of, strings_in
from steelyard.recording.reading._values import (
    DOCUMENT_TEXT,
    DOCUMENT_TEXTS,
    PASSAGE_IDS,
    PASSAGE_SCORES,
    PASSAGE_TEXTS,
    contexts_in,
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


def about_documents(value: Any) -> Iterator[tuple[str, list[str]]]:
    """The text of each document in a value, with what is told about it: its id, and its metadata's texts."""
    for one in _documents(value, _DEPTH):
        node = _node(one)
        about = [attribute(node, name) for name in ("id", "node_id", "metadata")]
        yield _told(one), [text for _, text in strings_in(about)]


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


MOST_BLOCK = 2_000_000
"""Characters of a text that are read; the rest is left out."""

# Tools wrap JSON in JSON and XML in that; deeper nesting is not a list of passages any more.
_LEVELS = 4
# Every repetition has a bound: these patterns run over texts that strangers write.
_TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]{0,40})([^<>]{0,500})>")
_ENTITY = re.compile(r"&(?:#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5}|[A-Za-z][A-Za-z0-9]{1,30});")
_ITEMS = frozenset(("document", "doc", "passage", "chunk", "result", "item", "snippet", "node", "source"))
_WRAPPERS_WORDS = """
documents docs context contexts passages chunks results sources search_results retrieved_documents
retrieved_context knowledge excerpts nodes items
"""
_WRAPPERS = frozenset(_WRAPPERS_WORDS.split())
_ATTRIBUTE_ID = re.compile(r"""\b(?:id|doc_id|document_id)\s?=\s?["']([^"'<>]{1,200})["']""")
_LOOKS_SHOWN = re.compile(
    r"[A-Za-z_][\w.]{0,80}(?:\(|=(?:['\"\[{<\d-]|(?:None|True|False)\b|[A-Za-z_][\w.]{0,80}\())"
)


def passages_of(value: object) -> tuple[Context, ...]:
    r"""The passages in a tool's result, or in a text that an application made.

    Args:
        value: A text, or a value that was read from JSON.

    Returns:
        The passages in order, with ids and scores where the value names them. A text that nothing divides is
        one passage.

    Example:
        >>> [one.text for one in passages_of("[1] Rome.\n\n[2] Paris.")]
        ['[1] Rome.\n\n[2] Paris.']
        >>> [(one.id, one.text) for one in passages_of('{"blocks": [{"id": 7, "text": "Rome."}]}')]
        [('7', 'Rome.')]
    """
    return tuple(replace(one, rank=rank) for rank, one in enumerate(_passages(value, _LEVELS)))


def _passages(value: object, levels: int) -> tuple[Context, ...]:
    within = partial(_passages, levels=levels - 1)
    if not isinstance(value, str):
        return contexts_in(value, within) if levels > 0 else ()
    text = text_of(value[:MOST_BLOCK]).replace("\r\n", "\n").replace("\r", "\n").strip()
    if not text:
        return ()
    return (_structured(text, within) if levels > 0 else ()) or (Context(text=text),)


def _structured(text: str, within: Callable[[str], tuple[Context, ...]]) -> tuple[Context, ...]:
    first = text[0]
    # JSON before Python's form: where a text is both, they mean the same, and JSON is read faster.
    if first in '[{"':
        value = _json(text)
        if isinstance(value, str) and value.strip():
            return within(value)
        if value is None and "\n" in text:
            value = _json_lines(text)
        if value is not None:
            return contexts_in(value, within)
    if first in "[({" or _LOOKS_SHOWN.match(text):
        value = read_shown(text)
        if value is not None and not isinstance(value, str):
            return contexts_in(value, within)
    return _tagged(text, within) if "</" in text else ()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _json_lines(text: str) -> Any:
    lines = [_json(line) for line in text.split("\n") if line.strip()]
    return None if any(line is None for line in lines) else lines


def _tagged(text: str, within: Callable[[str], tuple[Context, ...]]) -> tuple[Context, ...]:
    """The elements of an XML-like block; what is in a wrapper is split in its turn."""
    tags = list(_TAG.finditer(text))
    name = next((tag[2] for tag in tags if not tag[1] and tag[2].lower() in _ITEMS), None)
    if name is None:
        first = tags[0] if tags and tags[0].start() == 0 else None
        if first is None or first[2].lower() not in _WRAPPERS:
            return ()
        end = next((tag.start() for tag in reversed(tags) if tag[1] and tag[2] == first[2]), len(text))
        return within(text[first.end() : end])
    return tuple(_elements(text, tags, name))


def _elements(text: str, tags: Sequence[re.Match[str]], name: str) -> Iterator[Context]:
    opened: re.Match[str] | None = None
    inner: dict[str, tuple[int, int]] = {}
    starts: dict[str, int] = {}
    for tag in tags:
        if tag[2] == name and not tag[1]:
            opened, inner, starts = tag, {}, {}
        elif tag[2] == name and opened is not None:
            whole = (opened.end(), tag.start())
            start, end = next((inner[key] for key in PASSAGE_TEXTS if key in inner), whole)
            if content := _ENTITY.sub(lambda match: html.unescape(match[0]), text[start:end]).strip():
                yield Context(text=text_of(content), id=_id_of(opened, text[slice(*inner.get("id", (0, 0)))]))
            opened = None
        elif tag[1]:
            if tag[2] in starts:
                inner.setdefault(tag[2], (starts[tag[2]], tag.start()))
        else:
            starts.setdefault(tag[2], tag.end())


def _id_of(opened: re.Match[str], inner: str) -> str | None:
    """An element's id: its attribute, or what stands in an element of that name inside of it."""
    identity = _ATTRIBUTE_ID.search(opened[3])
    return (identity[1] if identity else inner.strip()) or None


_SEARCHES = ("search_call", "search_result", "search_tool_result")
_RESULTS = ("results", "result", "content", "output")
_LISTS = ("output", "content", "tool_outputs", "candidates")
_GROUNDED = (
    ("grounding_metadata", "grounding_chunks", "retrieved_context"),
    ("groundingMetadata", "groundingChunks", "retrievedContext"),
)
"""Where Gemini's replies have what was searched for them, in Python and in JSON."""
_DEEPEST_REPLY = 3


def searched_by_provider(reply: Any) -> tuple[Message, ...]:
    """What hosted searches found, as the messages of tools that the provider showed to the model.

    Results without texts, such as addresses alone, are left out.

    >>> found = {"type": "file_search_call", "results": [{"file_id": "f", "text": "Rome has seven hills."}]}
    >>> [one.text for one in searched_by_provider({"output": [found]})]
    ['Rome has seven hills.']
    """
    found = []
    for kind, results in _results(reply, _DEEPEST_REPLY):
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
    yield from _grounded(fields)
    for name in _LISTS:
        if isinstance(inner := fields.get(name), (list, tuple)) and depth:
            yield from _results(inner, depth - 1)


def _grounded(reply: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    for outer, chunks, context in _GROUNDED:
        told = reply.get(outer)
        found = told.get(chunks) if isinstance(told, Mapping) else None
        parts = (one.get(context) for one in found or () if isinstance(one, Mapping))
        yield context, [one for one in parts if isinstance(one, Mapping)]


def _fields(message: Any) -> Mapping[str, Any]:
    """The parts of a message of LangChain that may hold what was found."""
    extra = attribute(message, "additional_kwargs")
    beside = extra.get("tool_outputs") if isinstance(extra, Mapping) else None
    return {"content": attribute(message, "content"), "tool_outputs": beside}
