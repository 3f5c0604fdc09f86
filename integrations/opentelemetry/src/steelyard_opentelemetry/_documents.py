"""Retrieved documents and what tools returned, in the shapes that frameworks write them on spans."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from steelyard.record import Context
from steelyard.recording.building import Steps, is_telling
from steelyard.recording.provenance import names_passages, only_counts
from steelyard.recording.reading import (
    DOCUMENT_TEXTS,
    PASSAGE_IDS,
    PASSAGE_SCORES,
    PASSAGE_TEXTS,
    is_message_mapping,
    passages_of,
    read_shown,
    text_under,
)
from steelyard_opentelemetry._payload import Broken, decode, loaded, opened, shown_in

_AROUND = ("output", "tool_output", "raw_output", "update", "messages", "kwargs")
_PARTS = frozenset(("content", "isError", "meta", "blocks"))
_MOST_WRAPPERS = 6


def unwrapped(result: object) -> Any:
    """What a tool returned, without the messages and outputs that frameworks put around it."""
    value = opened(result)
    for _ in range(_MOST_WRAPPERS):
        inner = _inside(value)
        if inner is None or inner == "":
            break
        value = opened(inner)
    if _is_single_text(value):
        value = opened(value[0]["text"])
    if isinstance(value, str) and value[:1] in ("[", "{"):
        shown = read_shown(value)
        # Rows of a table stay the text that the model was told.
        if isinstance(shown, list) and shown and all(isinstance(one, (str, Mapping)) for one in shown):
            value = shown
    return _printed(value) or value


def _printed(value: object) -> list[Any]:
    """The objects of a list that shows each as Python does; none if anything else is in it."""
    rows = [shown_in(one) for one in value if isinstance(one, str)] if isinstance(value, list) else []
    is_all = isinstance(value, list) and len(rows) == len(value)
    return rows if is_all and all(isinstance(one, Mapping) for one in rows) else []


def has_failed(result: object) -> bool:
    """Whether a tool's message or output says that it failed, or what it returned within them does."""
    waiting = [loaded(result), unwrapped(result)]
    for value in waiting:  # it grows on the way
        if isinstance(value, (list, tuple)):
            waiting += value[:_MOST_WRAPPERS]
        elif isinstance(value, Mapping):
            if value.get("status") == "error" or True in (value.get("isError"), value.get("is_error")):
                return True
            waiting += [value[key] for key in (*_AROUND, "data") if key in value]
    return False


def _inside(value: Any) -> Any:
    """What stands in a message or in an output; None where this is neither."""
    if isinstance(value, (list, tuple)):
        is_said = bool(value) and all(map(_is_tool_message, value))
        return _contents(value) if is_said else None
    if not isinstance(value, Mapping):
        return None
    # A graph may keep its messages under any name.
    told = (
        one for one in value.values() if isinstance(one, list) and one and all(map(_is_tool_message, one))
    )
    inner = next((value[key] for key in _AROUND if key in value), None) or next(told, None)
    is_wrapped = inner is None and (_is_tool_message(value) or set(value) <= _PARTS)
    return _content(value) if is_wrapped else inner


def _contents(messages: Sequence[Mapping[str, Any]]) -> Any:
    """What several messages of tools hold, as one list."""
    found = [opened(_content(message)) for message in messages]
    if len(found) == 1:
        return found[0]
    return [part for each in found for part in (each if isinstance(each, list) else [each])]


def _is_tool_message(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    is_named = {"name", "result"} <= value.keys() <= {"id", "name", "result"}
    return "tool" in (value.get("type"), value.get("role")) or "tool_call_id" in value or is_named


def _content(message: Mapping[str, Any]) -> Any:
    data = message.get("data", message.get("kwargs"))
    place = data if isinstance(data, Mapping) and "content" in data else message
    return next((place[key] for key in ("content", "blocks", "result") if key in place), None)


def _is_single_text(value: Any) -> bool:
    """Whether a content has one text block, in which anything may stand."""
    if not isinstance(value, (list, tuple)) or len(value) != 1 or not isinstance(value[0], Mapping):
        return False
    block = value[0]
    is_text = "text" in (block.get("type"), block.get("block_type")) or set(block) == {"text"}
    return is_text and isinstance(block.get("text"), str)


_DEPTH = 6
_LISTS = (
    *("documents", "docs", "nodes", "source_nodes", "source_documents", "context", "contexts", "results"),
    *("outputs", "output", "inputs", "raw_output", "matches", "chunks", "artifact", "data", "kwargs"),
)


def documents_in(value: object, depth: int = _DEPTH) -> tuple[Context, ...]:
    """The LangChain Documents or LlamaIndex nodes in a payload, in order; nothing where it holds none.

    Only those two shapes count here, since any object may have a `text`.
    """
    value = decode(value)
    if depth <= 0 or isinstance(value, (str, bytes, Broken)):
        return ()
    if isinstance(value, Mapping):
        if document := _framework(value):
            return (document,)
        return next(filter(None, (documents_in(part, depth - 1) for part in _parts(value))), ())
    if not isinstance(value, Sequence):
        return ()
    items = [documents_in(item, depth - 1) for item in value]
    # A list that holds anything else is not a retriever's.
    return tuple(chain.from_iterable(items)) if all(items) else ()


def _parts(value: Mapping[str, Any]) -> Iterator[Any]:
    """What may hold documents in a payload, the usual places first."""
    yield from (value[key] for key in _LISTS if key in value)
    # What a conversation says besides was found for an earlier answer.
    if not is_message_mapping(value):
        others = (item for key, item in value.items() if key not in _LISTS)
        yield from (item for item in others if isinstance(item, (Mapping, list)))


def retrieved_in(value: object) -> tuple[Context, ...]:
    """The documents in what is known to be a retrieval's result: any shape with a text or an id."""
    known = documents_in(value)
    if known:
        return known
    whole = decode(value)
    value = _list_in(whole)
    items = value if isinstance(value, (list, tuple)) else [value]
    if parts := _names_in(value) or _beside_texts(items):
        return parts
    found = tuple(document for item in items if (document := _any(decode(item))))
    is_told = any(one.text for one in found) or isinstance(value, (str, Broken))
    return found if is_told else passages_of(whole) or found


def told_by_tool(result: object, sent: Iterable[str]) -> tuple[Any, int]:
    """What a tool returned, and how many texts it only names: a prompt may have these.

    Where no prompt shows it, names are no evidence, nor are a check's yes or no, and how much was found.
    """
    found = unwrapped(result)
    if isinstance(result, str) and any(result in text for text in sent):
        return found, 0
    if found and are_names(found):
        return None, len(found)
    if not isinstance(found, Mapping):
        return found, 0
    checks = [one for one in found.values() if one is None or isinstance(one, bool)]
    counts = counts_in(found)
    return (found if len(checks) + len(counts) < len(found) else None if any(counts) else ""), 0


def is_tally(value: object) -> bool:
    """Whether what a look-up returned is a text that says how much was found, and no more."""
    return isinstance(value, str) and only_counts(value)


CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def counts_in(fields: Mapping[str, Any]) -> list[int]:
    """The counts of passages among some fields, which are known by their names."""
    numbers = ((CAMEL.sub("_", str(key)), value) for key, value in fields.items() if type(value) is int)
    parts = ((re.split(r"[\W_]", key.lower()), value) for key, value in numbers)
    return [value for words, value in parts if any(names_passages(f"{one.rstrip('s')}s") for one in words)]


def _list_in(value: object) -> object:
    """The list that an object holds under a usual name; else the object."""
    fields = value if isinstance(value, Mapping) else {}
    return next((fields[key] for key in _LISTS if isinstance(fields.get(key), list)), value)


def _names_in(value: object) -> tuple[Context, ...]:
    names = value if isinstance(value, (list, tuple)) and are_names(value) else ()
    return tuple(Context(text="", id=name) for name in names)


def are_names(value: object) -> bool:
    """Whether a list holds names alone, as of files or ids: which documents were found, not what they say."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        return False
    return not any(is_telling(one) or len(one.split()) > 1 for one in value)


def _beside_texts(items: Sequence[object]) -> tuple[Context, ...]:
    """The documents of a list that stands beside texts: mappings, or texts that one of these joins."""
    lists = [one for one in map(decode, items) if isinstance(one, (list, tuple))]
    texts = [one for one in items if isinstance(one, str)]
    if len(lists) != 1 or not texts:
        return ()
    told = list(map(decode, lists[0]))
    parts = tuple(one for one in map(_any, told) if one and one.text)
    is_list = all(isinstance(one, Mapping) for one in told)
    return parts if is_list or all(any(part.text in text for text in texts) for part in parts) else ()


def windows_in(value: object) -> tuple[Context, ...]:
    """The text around each document that its metadata holds, as of LlamaIndex's sentence windows.

    A step after the retrieval puts it in the document's place, which no span tells; the prompt does.
    """
    found = decode(value)
    items = found if isinstance(found, (list, tuple)) else ()
    windows: list[Context] = []
    for item in items:
        outer = item if isinstance(item, Mapping) else {}
        node = decode(outer.get("node"))
        fields = node if isinstance(node, Mapping) else outer
        metadata = decode(fields.get("metadata"))
        text = metadata.get("window") if isinstance(metadata, Mapping) else None
        if isinstance(text, str) and text.strip():
            windows.append(_context(text.strip(), fields, score=outer.get("score")))
    return tuple(windows)


def noted_in(value: object) -> tuple[str, ...]:
    """Texts that an application noted by hand: those of documents in any shape, of a list, or one text."""
    value = decode(value)
    return () if isinstance(value, Broken) else tuple(one.text for one in retrieved_in(value) if one.text)


def merged(documents: Iterable[Context], known: Iterable[Context]) -> tuple[Context, ...]:
    """The documents, each with the id and score that another place knew for the same text."""
    by_text: dict[str, Context] = {}
    for item in known:
        before = by_text.get(item.text)
        by_text[item.text] = _filled(before, item) if before else item
    return tuple(_filled(item, by_text.get(item.text)) for item in documents)


def _filled(document: Context, other: Context | None) -> Context:
    if other is None or (document.id is not None and document.score is not None):
        return document
    return replace(
        document,
        id=document.id if document.id is not None else other.id,
        score=document.score if document.score is not None else other.score,
    )


def _framework(value: Mapping[str, Any]) -> Context | None:
    inner = value.get("kwargs")
    for fields in (inner, value) if isinstance(inner, Mapping) else (value,):
        text = text_under(fields, DOCUMENT_TEXTS)
        if text is not None:
            return _context(text, fields, score=fields.get("score"))
    node = decode(value.get("node"))
    if isinstance(node, Mapping):
        text = _node_text(node)
        return _context(text, node, score=value.get("score")) if text else None
    return None


def _node_text(node: Mapping[str, Any]) -> str:
    text = node.get("text")
    if isinstance(text, str):
        return text
    resource = node.get("text_resource")
    text = resource.get("text") if isinstance(resource, Mapping) else None
    return text if isinstance(text, str) else ""


def _any(value: object) -> Context | None:
    if isinstance(value, str):
        # A class of the application's own is written as Python shows it.
        found = _any(shown) if isinstance(shown := shown_in(value), Mapping) else None
        return found or (Context(text=value.strip()) if value.strip() else None)
    if not isinstance(value, Mapping):
        return None
    text = text_under(value, PASSAGE_TEXTS) or text_under(_metadata(value), PASSAGE_TEXTS) or ""
    found = _context(text, value, score=None)
    return found if found.text or found.id is not None else None


def _metadata(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a vector store keeps beside a vector, as JSON or as Python shows it."""
    told = decode(value.get("metadata"))
    shown = read_shown(told) if isinstance(told, str) and told.startswith("{") else told
    return shown if isinstance(shown, Mapping) else {}


def _context(text: str, fields: Mapping[str, Any], *, score: object) -> Context:
    """A context whose id and score may hide in the metadata, where vector stores like to put them."""
    metadata = decode(fields.get("metadata"))
    places = [fields, metadata] if isinstance(metadata, Mapping) else [fields]
    ids = (place.get(key) for place in places for key in PASSAGE_IDS)
    scores = (place.get(key) for place in places for key in PASSAGE_SCORES)
    identity = next((found for found in ids if isinstance(found, (str, int)) and found != ""), None)
    number = next((found for value in (score, *scores) if (found := _number(value)) is not None), None)
    return Context(text=text, id=None if identity is None else str(identity), score=number)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def left_none(steps: Steps) -> bool:
    """Whether a postprocessor of LlamaIndex was given no nodes, or left none."""
    return any(
        isinstance(step.given, Mapping)
        and {"nodes", "query_bundle"} <= step.given.keys()
        and [] in (step.given["nodes"], step.returned)
        for step in steps.steps
    )


def asked_of_tool(passing: Sequence[object]) -> Any:
    """What a tool was called with."""
    given = loaded(passing[0]) if passing else None
    return given.get("input", given.get("inputs", given)) if isinstance(given, Mapping) else given
