"""Traces on their way: which spans are open, which have ended, and when a turn is complete.

"The root has ended" is not "the trace is complete": a streamed answer's model call may start later, and a
root may never end. What counts is that the turn's own spans have ended, none of them is open, and a short
quiet period has passed. A span that no dialect knows (an HTTP server's) holds nothing up: a turn below it is
complete by itself. A span that is open while nothing happens below it for `ttl` seconds is taken for one that
never ends.

Pure bookkeeping: the caller tells the time, and brings its own lock.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from steelyard_opentelemetry._grouping import Candidates
from steelyard_opentelemetry._otlp import ContentEvent, with_content
from steelyard_opentelemetry._span import Span
from steelyard_opentelemetry.dialects import known_scope


@dataclass(slots=True)
class Started:
    """A span that has begun, and has not ended yet."""

    trace_id: str
    span_id: str
    parent_id: str | None
    scope: str
    start: int = 0
    flow: str = ""
    touched: float = 0.0
    """When something last happened below it."""


@dataclass(slots=True)
class _Trace:
    """What is known of one trace so far."""

    touched: float
    open: dict[str, Started] = field(default_factory=dict)
    ended: dict[str, Span] = field(default_factory=dict)
    arrived: dict[str, float] = field(default_factory=dict)
    told: dict[str, list[ContentEvent]] = field(default_factory=dict)
    look: float = 0.0
    due: float = 0.0
    kept_until: float = 0.0
    sender: str = ""
    read: dict[str, tuple[list[str], Candidates]] = field(default_factory=dict)


class OpenTurns:
    """A bounded table of traces.

    Args:
        quiet: Seconds without news after which spans count as complete.
        ttl: Seconds after which an open span below which nothing happens counts as never ending.
        max_traces: How many traces are kept; beyond, the one without news for longest is evicted.
        max_spans: How many ended spans are kept, over all traces.
        read: Reads some spans of one trace, once while they are unchanged.
        patient: Keep a trace that holds parts of a turn and no whole one for `ttl` seconds, although nothing
            in it is open: for those who are not told which spans are open.
        most_of_sender: How many ended spans of one service are kept for `ttl` seconds; while there are more,
            its traces are waited for only as long as is quiet. None: any number.
    """

    def __init__(
        self,
        *,
        quiet: float,
        ttl: float,
        max_traces: int,
        max_spans: int,
        read: Callable[[list[Span]], Candidates],
        patient: bool = False,
        most_of_sender: int | None = None,
    ) -> None:
        self._quiet, self._ttl = quiet, ttl
        self._max_traces, self._max_spans = max_traces, max_spans
        self._read = read
        self._patient = patient
        self._most_of_sender = most_of_sender
        self._held: Counter[str] = Counter()
        self._traces: OrderedDict[str, _Trace] = OrderedDict()
        self._open_scopes: Counter[str] = Counter()
        self.spans = 0
        """Ended spans in the table."""
        self.evicted = 0
        """Traces that had to make room."""
        self.never_ended = 0
        """Spans that were given up."""
        self.repeated = 0
        """Spans that ended twice."""
        self.told = 0
        """Log events in the table."""
        self.told_in_vain = 0
        """Log events whose span never came, or had left the table."""

    def __len__(self) -> int:
        return len(self._traces)

    def __contains__(self, trace_id: object) -> bool:
        return trace_id in self._traces

    def knows(self, trace_id: str, span_id: str) -> bool:
        """Whether a span is in the table, open or ended."""
        trace = self._traces.get(trace_id)
        return trace is not None and (span_id in trace.ended or span_id in trace.open)

    def awaits(self, span: Span) -> bool:
        """Whether another instrumentor's span that may stand for a span's turn is open in another trace."""
        others = self._open_scopes.keys() - {span.scope}
        return bool(others) and any(
            one.scope in others and one.start <= span.start
            for trace_id, trace in self._traces.items()
            if trace_id != span.trace_id
            for one in trace.open.values()
        )

    def start(self, span: Started, now: float) -> None:
        """Note that a span has begun."""
        trace = self._trace(span.trace_id, now)
        self._close(trace, span.span_id)
        trace.open[span.span_id] = span
        span.touched = now
        if known_scope(span.scope):
            self._open_scopes[span.scope] += 1
        self._touch(trace, span.parent_id, now)

    def end(self, span: Span, now: float) -> None:
        """Note that a span has ended."""
        trace = self._trace(span.trace_id, now)
        begun = trace.open.get(span.span_id)
        if begun is not None and begun.flow:
            span = replace(span, flow=begun.flow)
        self._close(trace, span.span_id)
        if span.span_id in trace.ended:
            self.repeated += 1
            return
        trace.ended[span.span_id] = span
        trace.arrived[span.span_id] = now
        trace.look = min(trace.look, now + self._quiet)
        trace.kept_until = 0.0
        trace.sender = trace.sender or span.service
        self._held[trace.sender] += 1
        self.spans += 1
        self._touch(trace, span.parent_id, now)
        while self.spans > self._max_spans and len(self._traces) > 1:
            self._evict()

    def tell(self, told: ContentEvent, now: float) -> None:
        """Note what a log event says of a span, which may have ended, or not have come yet."""
        trace = self._trace(told.trace_id, now)
        trace.told.setdefault(told.span_id, []).append(told)
        self.told += 1
        if told.span_id in trace.ended:
            # Whatever was read of the trace was read without it.
            trace.read.clear()
            trace.kept_until = 0.0
            trace.arrived[told.span_id] = now
            trace.look = min(trace.look, now + self._quiet)
            self._touch(trace, trace.ended[told.span_id].parent_id, now)
        elif told.span_id in trace.open:
            trace.open[told.span_id].touched = now
        else:
            trace.open[told.span_id] = Started(told.trace_id, told.span_id, None, "", touched=now)

    def ripe(self, now: float, *, force: bool = False) -> list[Candidates]:
        """Take out every turn that is complete; `force` does not wait for the quiet period."""
        quiet = 0.0 if force else self._quiet
        found: list[Candidates] = []
        for trace_id, trace in list(self._traces.items()):
            if force or now >= trace.due:
                if force:
                    trace.look = now
                found += self._ripe_of(trace_id, trace, now, quiet)
        return found

    def _ripe_of(self, trace_id: str, trace: _Trace, now: float, quiet: float) -> list[Candidates]:
        """What is complete of one trace."""
        most = self._most_of_sender
        presses = most is not None and self._held[trace.sender] > most  # so that others would have to wait
        ttl = min(self._quiet, self._ttl) if presses else self._ttl
        self._give_up(trace, now, ttl)
        if trace.open or now - trace.touched < quiet:
            ready = bool(trace.ended) and now >= trace.look
            found = self._ready(trace_id, trace, now, quiet) if ready else []
            trace.due = self._due(trace, now)
            return found
        if ttl == self._ttl and self._waits(trace, now):
            trace.due = min(now + self._quiet, trace.kept_until)
            return []
        if trace.ended:
            return [self._take(trace_id, trace, list(trace.ended))]
        self._forget(trace_id)
        return []

    def _due(self, trace: _Trace, now: float) -> float:
        """When it is worth looking at a trace again, without news: very many may wait at a time."""
        if not trace.open:
            return trace.touched + self._quiet
        stale = min(span.touched for span in trace.open.values()) + self._ttl
        # At the latest then, since a sender may come to hold too much meanwhile.
        return min(now + self._quiet, stale, trace.look if trace.ended else stale)

    def _waits(self, trace: _Trace, now: float) -> bool:
        """Whether a trace whose spans have all ended may still get what its turn lacks."""
        if not self._patient or not trace.ended:
            return False
        if not trace.kept_until:
            found = self._candidates(trace, list(trace.ended))
            lacks = not found.is_complete and found.is_part_of_turn
            trace.kept_until = trace.touched + self._ttl if lacks else now
        return now < trace.kept_until

    def rest(self) -> list[Candidates]:
        """Take out everything, complete or not."""
        traces = [trace for trace in self._traces.values() if trace.ended]
        found = [self._candidates(trace, list(trace.ended)) for trace in traces]
        self._traces.clear()
        self._open_scopes.clear()
        self._held.clear()
        self.spans = self.told = 0
        return found

    def _trace(self, trace_id: str, now: float) -> _Trace:
        trace = self._traces.get(trace_id)
        if trace is None:
            trace = self._traces[trace_id] = _Trace(now)
            while len(self._traces) > self._max_traces:
                self._evict()
        trace.touched, trace.due = now, 0.0
        self._traces.move_to_end(trace_id)
        return trace

    def _evict(self) -> None:
        trace_id = next(iter(self._traces))
        trace = self._traces[trace_id]
        self._let_go(trace, len(trace.ended))
        self._forget(trace_id)
        self.evicted += 1

    def _let_go(self, trace: _Trace, spans: int) -> None:
        self.spans -= spans
        self._held[trace.sender] -= spans
        if not self._held[trace.sender]:
            del self._held[trace.sender]

    def _forget(self, trace_id: str) -> None:
        """Drop a trace; what was told of spans that are not there belongs to nothing."""
        trace = self._traces.pop(trace_id)
        for key in list(trace.open):
            self._close(trace, key)
        for key in list(trace.told):
            self._drop_told(trace, key)

    def _drop_told(self, trace: _Trace, key: str) -> None:
        in_vain = len(trace.told.pop(key, ()))
        self.told -= in_vain
        self.told_in_vain += in_vain

    def _close(self, trace: _Trace, span_id: str) -> None:
        """A span is not open any more, if it was."""
        known = trace.open.pop(span_id, None)
        scope = known.scope if known is not None else ""
        if scope in self._open_scopes:
            self._open_scopes[scope] -= 1
            if not self._open_scopes[scope]:
                del self._open_scopes[scope]

    def _touch(self, trace: _Trace, parent_id: str | None, now: float) -> None:
        """Everything open above has news."""
        above = trace.open.get(parent_id or "")
        while above is not None and above.touched < now:
            above.touched = now
            above = trace.open.get(above.parent_id or "")

    def _give_up(self, trace: _Trace, now: float, ttl: float) -> None:
        stale = [key for key, span in trace.open.items() if now - span.touched >= ttl]
        for key in stale:
            self._close(trace, key)
            self._drop_told(trace, key)
        self.never_ended += len(stale)
        if stale:
            trace.look = now

    def _candidates(self, trace: _Trace, keys: list[str]) -> Candidates:
        """What some of a trace's ended spans hold, read once."""
        known = trace.read.get(keys[0])
        if known is not None and known[0] == keys:
            return known[1]
        found = self._read([self._with_told(trace, key) for key in keys])
        trace.read[keys[0]] = (keys, found)
        return found

    def _with_told(self, trace: _Trace, key: str) -> Span:
        """A span with what log events said of it."""
        told = sorted(trace.told.get(key, ()), key=attrgetter("at"))
        return with_content(trace.ended[key], (each.content for each in told)) if told else trace.ended[key]

    def _take(self, trace_id: str, trace: _Trace, keys: list[str]) -> Candidates:
        found = self._candidates(trace, keys)
        for key in keys:
            del trace.ended[key], trace.arrived[key]
            trace.read.pop(key, None)
            self.told -= len(trace.told.pop(key, ()))
        self._let_go(trace, len(keys))
        if not trace.ended and not trace.open:
            self._forget(trace_id)
        return found

    def _ready(self, trace_id: str, trace: _Trace, now: float, quiet: float) -> list[Candidates]:
        """Turns that are complete although spans above them, or elsewhere in the trace, are open."""
        # Some instrumentors never end a root: what waits longer than `ttl` below one is not held up any more.
        found: list[Candidates] = []
        trace.look = now + self._ttl
        for top, keys in _fragments(trace).items():
            age = now - max(trace.arrived[key] for key in keys)
            holders = self._holders(trace, trace.ended[top].parent_id)
            wait = self._wait(trace, keys, age, quiet, held=bool(holders))
            if wait is not None:
                trace.look = min(trace.look, now + wait)
                continue
            for holder in holders:
                self._close(trace, holder)
            self.never_ended += len(holders)
            found.append(self._take(trace_id, trace, keys))
        return found

    def _wait(self, trace: _Trace, keys: list[str], age: float, quiet: float, *, held: bool) -> float | None:
        """Seconds until it is worth looking at some spans again; None where they are taken now."""
        if age < quiet:
            return quiet - age
        late = age >= self._ttl
        if late and not held:
            return None
        if (late or not held) and self._candidates(trace, keys).is_complete:
            return None
        return max(quiet, self._ttl - age)

    def _holders(self, trace: _Trace, key: str | None) -> list[str]:
        """The open spans above that may stand for the turn."""
        seen: list[str] = []
        while key is not None and key in trace.open and key not in seen:
            seen.append(key)
            key = trace.open[key].parent_id
        return [key for key in seen if known_scope(trace.open[key].scope)]


def _fragments(trace: _Trace) -> dict[str, list[str]]:
    """The ended spans by the uppermost one above them, without those below which a span is open."""
    known: dict[str, str] = {}
    above = (_parent(span, trace.ended) for span in trace.open.values())
    busy = {_top(parent.span_id, trace.ended, known) for parent in above if parent is not None}
    fragments: dict[str, list[str]] = {}
    for key in trace.ended:
        fragments.setdefault(_top(key, trace.ended, known), []).append(key)
    return {top: keys for top, keys in fragments.items() if top not in busy}


def _parent(span: Span | Started, ended: Mapping[str, Span]) -> Span | None:
    """The ended span above another one; none if that began later, since a context has leaked then."""
    parent = ended.get(span.parent_id or "")
    return None if parent is None or span.start > parent.end else parent


def _top(key: str, ended: Mapping[str, Span], known: dict[str, str]) -> str:
    """The uppermost ended span above one, or itself; `known` are those found so far."""
    way: dict[str, None] = {}
    at = key
    while at not in known and at not in way:
        way[at] = None
        parent = _parent(ended[at], ended)
        if parent is None:
            break
        at = parent.span_id
    # In a circle, which only a broken exporter writes, the span where it was entered again is the top.
    top = known.get(at, at)
    known.update(dict.fromkeys(way, top))
    return top
