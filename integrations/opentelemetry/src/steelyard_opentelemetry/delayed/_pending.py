"""Which roots are open, which are held and for how long: the bookkeeping of `HoldingSpanProcessor`.

Nothing here is safe for threads or passes a span on; the processor does both. A span is taken exactly
once, and whoever takes it must pass it on.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan

from steelyard._internal.bounded import BoundedDict
from steelyard.record import TraceRef
from steelyard.scores import Evaluation

_REMEMBERED = 10_000
_OBJECTS = 2500
"""Bytes that a held root takes besides its texts, as measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HoldingCounts:
    """What has become of the roots and the scores so far."""

    holding: int = 0
    """Roots held back at this moment."""
    bytes: int = 0
    """Roughly how many bytes of attributes they keep alive."""
    released: Mapping[str, int] = field(default_factory=dict)
    """Roots that went out, by reason: `scored`, `not_judged`, `timeout`, `full`, `flush`, `shutdown`."""
    late: int = 0
    """Evaluations whose span was not here, or not any more; the event on the trace still has their scores."""
    errors: int = 0
    """Spans that could not be read, or on which the wrapped processor raised."""


@dataclass(frozen=True, slots=True)
class _Held:
    span: ReadableSpan
    trace_id: int
    deadline: float
    size: int


class PendingSpans:
    """Roots that wait for their scores, oldest first, bounded by number and bytes."""

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._open: BoundedDict[int, int] = BoundedDict(max_items=_REMEMBERED)
        self._root_of: BoundedDict[int, int] = BoundedDict(max_items=_REMEMBERED)
        self._early: BoundedDict[int, list[Evaluation]] = BoundedDict(max_items=_REMEMBERED)
        self._retrieving: BoundedDict[int, None] = BoundedDict(max_items=_REMEMBERED)
        self.bytes = 0
        self.released: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def next_deadline(self) -> float | None:
        """When the oldest is due; all are held equally long."""
        return next((held.deadline for held in self._held.values()), None)

    def begin(self, span: Any) -> None:
        """Remember an open root, so that scores may come before its end."""
        self._open[span.context.span_id] = span.context.trace_id
        self._root_of[span.context.trace_id] = span.context.span_id

    def mark_retrieving(self, trace_id: int) -> None:
        """Remember that something was retrieved in a trace."""
        self._retrieving[trace_id] = None

    def is_retrieving(self, trace_id: int) -> bool:
        """Whether something was."""
        return trace_id in self._retrieving

    def end(self, span: Any) -> list[Evaluation] | None:
        """Forget an open root that has ended; the Evaluations that came before its end, if any."""
        self._open.pop(span.context.span_id, None)
        self._retrieving.pop(span.context.trace_id, None)
        early = self._early.pop(span.context.span_id, None)
        if early is not None:
            self.released["scored"] += 1
        self._forget(span.context.trace_id, span.context.span_id)
        return early

    def hold(self, span: Any, *, until: float) -> list[ReadableSpan]:
        """Hold a root that has ended; the oldest ones that must leave for it."""
        held = _Held(span, span.context.trace_id, until, _size(span))
        self._held[span.context.span_id] = held
        self._root_of[held.trace_id] = span.context.span_id
        self.bytes += held.size
        out = []
        while len(self._held) > self._most or self.bytes > self._most_bytes:
            out.append(self._take(next(iter(self._held)), "full"))
        return out

    def score(self, evaluation: Evaluation) -> ReadableSpan | bool:
        """The held root that an Evaluation belongs to; True if it is open still and gets it; False if gone.

        The scored span itself is meant, or where that is not here, the root of its trace.
        """
        trace_id, span_id = ids_of(evaluation.trace)
        if span_id not in self._held and span_id not in self._open:
            span_id = self._root_of.get(trace_id, 0)
        if span_id in self._held:
            return self._take(span_id, "scored")
        if span_id in self._open:
            self._early.setdefault(span_id, []).append(evaluation)
            return True
        return False

    def drop(self, ref: TraceRef | None) -> ReadableSpan | None:
        """The held root of a turn that will not be judged; None where it is not held."""
        trace_id, span_id = ids_of(ref)
        if span_id not in self._held:
            span_id = self._root_of.get(trace_id, 0)
        return self._take(span_id, "not_judged") if span_id in self._held else None

    def take_due(self, now: float) -> list[ReadableSpan]:
        """The roots whose time is up."""
        out = []
        while (deadline := self.next_deadline) is not None and deadline <= now:
            out.append(self._take(next(iter(self._held)), "timeout"))
        return out

    def take_all(self, reason: str) -> list[ReadableSpan]:
        """All of them."""
        return [self._take(span_id, reason) for span_id in list(self._held)]

    def _take(self, span_id: int, reason: str) -> ReadableSpan:
        held = self._held.pop(span_id)
        self.bytes -= held.size
        self.released[reason] += 1
        self._forget(held.trace_id, span_id)
        return held.span

    def _forget(self, trace_id: int, span_id: int) -> None:
        if self._root_of.get(trace_id) == span_id:
            del self._root_of[trace_id]


def ids_of(ref: TraceRef | None) -> tuple[int, int]:
    """Trace and span id as numbers; 0 where there is none."""
    try:
        return int(ref.trace_id or "0", 16) if ref else 0, int(ref.span_id or "0", 16) if ref else 0
    except ValueError:
        return 0, 0


def _size(span: ReadableSpan) -> int:
    values = [*(span.attributes or {}).values()]
    for event in span.events:
        values.extend((event.attributes or {}).values())
    return _OBJECTS + sum(len(value) if isinstance(value, str | tuple | bytes) else 8 for value in values)
