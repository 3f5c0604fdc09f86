"""Passages in rows: what a step keeps under a name for them, and what a prompt shows as lines of JSON."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.record import Context
from steelyard.recording.provenance import MOST_BLOCK, names_passages, passages_of
from steelyard_opentelemetry.spans._payload import decode
from steelyard_opentelemetry.spans._results import is_long, telling

_FIELDS = ("context", "contexts", "documents", "docs", "passages", "chunks", "web_results", "search_results")
_TEXTS = ("content", "text", "page_content", "chunk", "description", "summary")
_FENCE = "```"
_HEADING = re.compile(
    r"\b(?:context|knowledge|documents?|chunks?|passages?|sources?|evidence|entit(?:y|ies)|relationships?"
    r"|relations|communit(?:y|ies)|reports?)\b",
    re.IGNORECASE,
)
_FORM = re.compile(r"\b(?:example|format|schema|reply|respond|return|output)\b", re.IGNORECASE)
_DEPTH = 3
_MOST = 200


def lists_under_names(payload: object) -> tuple[Context, ...]:
    """The first list of passages under a name that means nothing else."""
    fields = _fields(payload)
    lists = (fields[name] for name in _FIELDS if isinstance(fields.get(name), (list, tuple)))
    return next((found for items in lists if (found := telling(passages_of(list(items))))), ())


def rows_under_names(payload: object) -> list[Context]:
    """The passages of lists under any name that may mean passages; the prompt decides on them."""
    lists = _blocks(_fields(payload), (list, tuple), _DEPTH)
    return [one for rows in lists for one in passages_of(rows) if is_long(one.text)]


def texts_under_names(payload: object) -> list[str]:
    """The texts under any name that may mean passages; the prompt decides on what is in them."""
    return list(_blocks(_fields(payload), (str,), _DEPTH))


def passages_in_text(text: str) -> tuple[Context, ...]:
    """The passages in a text; rows of a table stay together: they tell more than their cells."""
    found = tuple(one for one in passages_of(text) if is_long(one.text))
    return found or ((Context(text=text.strip()),) if is_long(text) else ())


def fenced_rows(text: str) -> tuple[Context, ...]:
    """The texts in lines of JSON between fences, each below a heading that names passages or a graph's parts.

    So prompts over knowledge graphs show entities, relations and chunks. A form that a model is to fill in
    stands between fences too, but below no such heading, or in one object over several lines.
    """
    found: dict[str, Context] = {}
    rows: list[str] = []
    heading, inside = "", False
    for line in text[:MOST_BLOCK].split("\n"):
        plain = line.strip()
        if plain.startswith(_FENCE):
            is_told = inside and _HEADING.search(heading) and not _FORM.search(heading)
            told = [_text_of_row(row) for row in rows] if is_told else []
            found.update((row.text, row) for row in told if row is not None and None not in told)
            rows, inside = [], not inside
        elif inside:
            rows += [plain] if plain else []
        elif plain:
            heading = plain
    return tuple(found.values())


def _text_of_row(row: str) -> Context | None:
    """The passage in a line of JSON; None where it is not an object with a text."""
    value = decode(row) if row.startswith("{") else None
    if not isinstance(value, Mapping):
        return None
    text = next((v for key in _TEXTS if isinstance(v := value.get(key), str) and is_long(v)), "")
    named = value.get("id") or value.get("reference_id")
    return Context(text=text, id=str(named) if named else None) if text else None


def _fields(payload: object) -> Mapping[str, Any]:
    value = decode(payload)
    if not isinstance(value, Mapping):
        return {}
    inner = value.get("outputs", value.get("output", value))
    return inner if isinstance(inner, Mapping) else value


def _blocks(fields: Mapping[str, Any], kinds: tuple[type, ...], depth: int) -> Iterator[Any]:
    for name, value in itertools.islice(fields.items(), _MOST):
        if isinstance(value, Mapping) and depth > 0:
            yield from _blocks(value, kinds, depth - 1)
        elif isinstance(value, kinds) and names_passages(str(name)):
            yield value
