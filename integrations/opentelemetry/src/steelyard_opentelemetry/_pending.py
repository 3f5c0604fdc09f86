"""Which roots are open, which are held and for how long: the bookkeeping of `HoldingSpanProcessor`."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
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


@dataclass(slots=True, eq=False)
class _Open:
    """A root that has not ended."""

    is_retrieving: bool = False
    early: list[Evaluation] = field(default_factory=list)
    """Evaluations that came before its end."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A root that waits for its scores."""

    span: ReadableSpan
    trace_id: int
    deadline: float
    size: int


class PendingSpans:
    """Which roots are open, and which are held: the oldest first, bounded by number and bytes.

    A held span is taken exactly once, and whoever takes it must pass it on.
    """

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._open: BoundedDict[int, _Open] = BoundedDict(max_items=_REMEMBERED)
        self._root_of: BoundedDict[int, int] = BoundedDict(max_items=_REMEMBERED)
        self.held: dict[int, _Held] = {}
        self.bytes = 0
        self.released: Counter[str] = Counter()

    @property
    def next_deadline(self) -> float | None:
        """When the oldest is due; all are held equally long."""
        return next((held.deadline for held in self.held.values()), None)

    def begin(self, span: Any) -> None:
        """Remember an open root, so that scores may come before its end."""
        self._open[span.context.span_id] = _Open()
        self._root_of[span.context.trace_id] = span.context.span_id

    def mark_retrieving(self, trace_id: int) -> None:
        """Remember that something was retrieved in a trace."""
        if (root := self._open.get(self._root_of.get(trace_id, 0))) is not None:
            root.is_retrieving = True

    def is_retrieving(self, trace_id: int) -> bool:
        """Whether something was."""
        root = self._open.get(self._root_of.get(trace_id, 0))
        return root is not None and root.is_retrieving

    def end(self, span: Any) -> list[Evaluation]:
        """Forget an open root that has ended; the Evaluations that came before its end."""
        root = self._open.pop(span.context.span_id, None)
        self._forget(span.context.trace_id, span.context.span_id)
        early = root.early if root is not None else []
        if early:
            self.released["scored"] += 1
        return early

    def hold(self, span: Any, *, until: float) -> list[ReadableSpan]:
        """Hold a root that has ended; the oldest ones that must leave for it."""
        held = _Held(span, span.context.trace_id, until, _size(span))
        self.held[span.context.span_id] = held
        self._root_of[held.trace_id] = span.context.span_id
        self.bytes += held.size
        out = []
        while len(self.held) > self._most or self.bytes > self._most_bytes:
            out.append(self.take(next(iter(self.held)), "full"))
        return out

    def score(self, evaluation: Evaluation) -> ReadableSpan | bool:
        """The held root that an Evaluation belongs to; True if it is open and gets it; False if gone."""
        span_id = self._meant(evaluation.trace)
        if span_id in self.held:
            return self.take(span_id, "scored")
        if span_id in self._open:
            self._open[span_id].early.append(evaluation)
        return span_id in self._open

    def drop(self, trace: TraceRef | None) -> list[ReadableSpan]:
        """The held root of a turn that will not be judged, if it is held."""
        span_id = self._meant(trace)
        return [self.take(span_id, "not_judged")] if span_id in self.held else []

    def take_due(self, now: float) -> list[ReadableSpan]:
        """The roots whose time is up."""
        out = []
        while (deadline := self.next_deadline) is not None and deadline <= now:
            out.append(self.take(next(iter(self.held)), "timeout"))
        return out

    def take(self, span_id: int, reason: str) -> ReadableSpan:
        """Hold a root no longer."""
        held = self.held.pop(span_id)
        self.bytes -= held.size
        self.released[reason] += 1
        self._forget(held.trace_id, span_id)
        return held.span

    def _meant(self, ref: TraceRef | None) -> int:
        """The scored span itself, or where that is not here, the root of its trace."""
        if ref is None:
            return 0
        try:
            trace_id, span_id = (int(one or "0", 16) for one in (ref.trace_id, ref.span_id))
        except ValueError:
            return 0
        return span_id if span_id in self.held or span_id in self._open else self._root_of.get(trace_id, 0)

    def _forget(self, trace_id: int, span_id: int) -> None:
        if self._root_of.get(trace_id) == span_id:
            del self._root_of[trace_id]


def _size(span: ReadableSpan) -> int:
    values = [*(span.attributes or {}).values()]
    for event in span.events:
        values.extend((event.attributes or {}).values())
    return _OBJECTS + sum(len(value) if isinstance(value, str | tuple | bytes) else 8 for value in values)


def done_within(deadline: float, work: Callable[[], bool]) -> bool:
    """Do work on a thread of its own, which goes on if the time is up.

    Args:
        deadline: When to stop waiting, on the monotonic clock.
        work: Says whether all of it is done.

    Returns:
        Whether all of it was done in time.
    """
    done: list[bool] = []
    thread = threading.Thread(target=lambda: done.append(work()), name="steelyard-flush", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is shutting down
        return work()
    thread.join(max(0.0, deadline - time.monotonic()))
    return bool(done and done[0])
