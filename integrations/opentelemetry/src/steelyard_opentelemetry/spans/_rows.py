"""Passages that a step keeps as texts under a name for them, such as `context`, `rows` or `web_results`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.record import Context
from steelyard.recording.provenance import names_passages, passages_of
from steelyard_opentelemetry.spans._payload import decode
from steelyard_opentelemetry.spans._results import is_long, telling

_FIELDS = ("context", "contexts", "documents", "docs", "passages", "chunks", "web_results", "search_results")
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
