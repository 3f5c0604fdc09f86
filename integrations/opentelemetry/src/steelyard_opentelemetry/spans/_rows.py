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
    return _found(payload, (list, tuple))


def texts_under_names(payload: object) -> list[Context]:
    """The passages of texts under any name that may mean passages; the prompt decides on them."""
    return _found(payload, str)


def _found(payload: object, kind: type | tuple[type, ...]) -> list[Context]:
    blocks = itertools.islice(_blocks(_fields(payload), kind, _DEPTH), _MOST)
    return [one for block in blocks for one in _in_block(block) if is_long(one.text)]


def _fields(payload: object) -> Mapping[str, Any]:
    value = decode(payload)
    if not isinstance(value, Mapping):
        return {}
    inner = value.get("outputs", value.get("output", value))
    return inner if isinstance(inner, Mapping) else value


def _blocks(fields: Mapping[str, Any], kind: type | tuple[type, ...], depth: int) -> Iterator[Any]:
    for name, value in fields.items():
        if isinstance(value, Mapping) and depth > 0:
            yield from _blocks(value, kind, depth - 1)
        elif isinstance(value, kind) and names_passages(str(name)):
            yield value


def _in_block(block: Any) -> tuple[Context, ...]:
    """The passages in a list or a text; rows of a table stay together: they tell more than their cells."""
    found = passages_of(block)
    is_table = isinstance(block, str) and not any(is_long(one.text) for one in found)
    return (Context(text=block.strip()),) if is_table else found
