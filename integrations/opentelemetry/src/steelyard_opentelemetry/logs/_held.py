"""Log events with content, held until the spans they belong to are read. Needs no SDK, and no lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from steelyard_opentelemetry.spans._logs import add_content, content_of_log

_Event = tuple[str, Mapping[str, Any], object]

_held: dict[int, list[_Event]] = {}
_order: deque[int] = deque()


def hold(span_id: int, event: _Event, *, most: int) -> None:
    """Keep a reference to a log event: its name, its attributes and its body.

    Of the latest `most` events, those of spans that have not been read are held.
    """
    _held.setdefault(span_id, []).append(event)
    _order.append(span_id)
    while len(_order) > most:
        # Most of these have been read long ago; the others belong to spans that never came.
        _held.pop(_order.popleft(), None)


def content_of(span_id: int) -> dict[str, Any]:
    """What the events of a span say, as attributes of the span; they are held no longer."""
    known: dict[str, Any] = {}
    for name, attributes, body in _held.pop(span_id, ()):
        add_content(known, content_of_log(name, attributes, body))
    return known
