"""Log events with content, held until the spans they belong to are read. Needs no SDK."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from steelyard_opentelemetry.spans._logs import add_content, content_of_log

_Event = tuple[str, Mapping[str, Any], object]

_lock = threading.Lock()
_held: dict[int, list[_Event]] = {}
_order: deque[int] = deque()
_count = 0


def hold(span_id: int, event: _Event, *, most: int) -> None:
    """Keep a reference to a log event: its name, its attributes and its body.

    Where more than `most` are held, the spans that have waited longest go first.
    """
    global _count
    with _lock:
        events = _held.get(span_id)
        if events is None:
            events = _held[span_id] = []
            _order.append(span_id)
        events.append(event)
        _count += 1
        # Ids of spans that have been read stay in the order until they come up.
        while _order and (_count > most or len(_order) > 2 * most):
            _count -= len(_held.pop(_order.popleft(), ()))


def content_of(span_id: int) -> dict[str, Any]:
    """What the events of a span say, as attributes of the span; they are held no longer."""
    global _count
    if not _held:
        return {}
    with _lock:
        events = _held.pop(span_id, [])
        _count -= len(events)
    known: dict[str, Any] = {}
    for name, attributes, body in events:
        add_content(known, content_of_log(name, attributes, body))
    return known
