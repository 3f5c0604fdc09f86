"""The span processor: it takes references on the application's thread and does the rest on one of its own."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from steelyard._internal.forks import in_children
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard.recording import (
    OnRecord,
    TurnTarget,
    changed,
    check_function,
    check_positive,
    checked_target,
    is_unrecorded,
)
from steelyard_opentelemetry._diagnosis import DiagnosisTally, NoRecord
from steelyard_opentelemetry._extractor import Extraction, TurnExtractor
from steelyard_opentelemetry._hook import content_of
from steelyard_opentelemetry._open_turns import OpenTurns, Started
from steelyard_opentelemetry._pending import done_within
from steelyard_opentelemetry._span import from_sdk, is_own

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Span as SdkSpan


_numbers = itertools.count(1)
_tasks: weakref.WeakKeyDictionary[asyncio.Task[object], str] = weakref.WeakKeyDictionary()
_thread = threading.local()


def current_flow() -> str:
    """A name for the task that is running, or for the thread if it runs none; no two have the same."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is None:
        name = getattr(_thread, "name", None)
        if name is None:
            name = _thread.name = f"thread {next(_numbers)}"
        return str(name)
    if task not in _tasks:
        _tasks[task] = f"task {next(_numbers)}"
    return _tasks[task]


_log = SafeLogger("steelyard.opentelemetry")

# For `diagnoses`, which people read; counts hold the rest.
_KEPT_DIAGNOSES = 100
# A quarter of `quiet`, within bounds: often enough to be in time, seldom enough to cost nothing.
_LONGEST_TICK, _SHORTEST_TICK = 0.5, 0.02
# Of the program's end, for a Monitor that only begins with the last turn.
_EXIT_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanCounts:
    """What has become of every span and trace so far."""

    spans: int = 0
    """Ended spans that were looked at."""
    own: int = 0
    """Spans of Steelyard's own and of judges; never recorded."""
    records: int = 0
    """Turns handed to the Monitor."""
    duplicates: int = 0
    """Turns that a second instrumentor told again."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Candidates that gave no Record, by cause; see `diagnoses`."""
    evicted_traces: int = 0
    """Traces that had to make room before they were complete (`max_traces`, `max_spans`)."""
    dropped_spans: int = 0
    """Spans that came faster than they could be looked at."""
    late_spans: int = 0
    """Spans that came after their turn had been recorded."""
    repeated_spans: int = 0
    """Spans that ended twice."""
    never_ended: int = 0
    """Spans that were given up after `ttl`."""
    errors: int = 0
    """Times that reading or handing over failed; the first is logged."""
    open_traces: int = 0
    """Traces that are not complete yet."""


class EvaluationSpanProcessor(SpanProcessor):
    """Records the RAG turns in the spans that pass by.

    Add it to a `TracerProvider` beside the exporters. `on_start` and `on_end` append a reference to a queue
    and return; traces are put together on a daemon thread of the processor, and complete turns go to the
    Monitor.

    Args:
        monitor: Where the Records go; without one, `steelyard.online.default_monitor()`.
        quiet: Seconds without a new span after which a turn whose spans have all ended is complete.
        ttl: Seconds after which an open span below which nothing happens counts as never ending, and a
            retrieval whose model call is missing is given up.
        max_traces: How many traces may be incomplete at once; beyond, the one without news for longest is
            evicted, and counted.
        max_spans: How many ended spans are kept at most.
        on_record: Called with every Record before it is handed over; may return a changed one.

    Raises:
        ConfigurationError: If a limit is not positive or the monitor cannot take Records.
    """

    def __init__(
        self,
        monitor: TurnTarget | None = None,
        *,
        quiet: float = 1.0,
        max_traces: int = 1000,
        ttl: float = 120.0,
        max_spans: int = 100_000,
        on_record: OnRecord | None = None,
    ) -> None:
        limits = {"quiet": quiet, "ttl": ttl, "max_traces": max_traces, "max_spans": max_spans}
        for name, value in limits.items():
            check_positive(name, value)
        check_function("on_record", on_record)
        self._on_record = on_record
        self._monitor = _default_monitor() if monitor is None else checked_target(monitor)
        self._warn_once = WarnOnce(_log)
        self._limits = {"quiet": quiet, "ttl": ttl, "max_traces": max_traces, "max_spans": max_spans}
        self._max_spans = max_spans
        self._tick = min(_LONGEST_TICK, max(_SHORTEST_TICK, quiet / 4))
        self._closed = False
        # Weak: the registration must not keep a processor that was thrown away.
        self._at_exit = partial(_call_if_there, weakref.WeakMethod(self._exit))
        self._begin()
        in_children(self._begin)

    def _begin(self) -> None:
        """A fresh start, also in a forked child: what the parent had open is the parent's to record."""
        self._inbox: deque[tuple[Any, str | None]] = deque()
        self._ignored: set[int] = set()
        self._wake = threading.Event()
        self._idle = False
        self._lock = threading.Lock()
        # Starting is locked for itself, since it happens on the application's thread.
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._extractor = TurnExtractor(patience=2 * float(self._limits["ttl"]))
        self._turns = OpenTurns(read=self._extractor.candidates, **self._limits)  # type: ignore[arg-type]
        self._extractor.awaits = self._turns.awaits
        self._tally: Counter[str] = Counter()
        self._skipped = DiagnosisTally(_log)
        self._diagnoses: deque[NoRecord] = deque(maxlen=_KEPT_DIAGNOSES)
        self._dropped = 0
        self._errors = 0

    # The hot path.

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        """Note that a span has begun."""
        if is_unrecorded():
            # Remembered by id: at the end of the span the context that said so is gone.
            self._ignored.add(_id_of(span))
            return
        # Asked here, since the rest is done on another thread; below another span its trace says it.
        self._put(span, current_flow() if getattr(span, "parent", None) is None else "")

    def on_end(self, span: ReadableSpan) -> None:
        """Note that a span has ended."""
        # The set is empty but for our own judges' spans, so that asking it first costs nothing.
        if self._ignored and (number := _id_of(span)) in self._ignored:
            self._ignored.discard(number)
            return
        self._put(span, None)

    def _put(self, span: ReadableSpan, flow: str | None) -> None:
        """Keep a span that begins in a task or thread, or that ends if none is given."""
        if self._closed:
            return
        # Counted and dropped: what is held for spans that nobody looks at must not grow.
        if len(self._inbox) >= self._max_spans:
            self._dropped += 1
            return
        self._inbox.append((span, flow))
        if self._thread is None:
            self._start()
        # Only a thread that sleeps has to be woken; setting an event takes a lock.
        elif self._idle:
            self._wake.set()

    # Everything below is for the processor's own thread, or for whoever holds its lock.

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None or self._closed:
                return
            thread = threading.Thread(target=self._run, name="steelyard-spans", daemon=True)
            try:
                self._start_monitor()
                thread.start()
            except RuntimeError:
                # The interpreter is shutting down; force_flush and shutdown still do the work.
                return
            self._thread = thread
            self._go_first_at_exit()

    def _start_monitor(self) -> None:
        """With the first span, as an exiting interpreter may start no thread for the first turn."""
        start = getattr(self._monitor, "start", None)
        if callable(start):
            with contextlib.suppress(Exception):
                start()

    def _go_first_at_exit(self) -> None:
        """Exit functions run last in, first out: turns have to be handed over before Monitors close."""
        atexit.unregister(self._at_exit)
        atexit.register(self._at_exit)

    def _exit(self) -> None:
        """The program ends: hand over what there is, and give a Monitor that only now gets it some time.

        One that begins with it is closed too: exit functions that are registered now are not called any more.
        """
        before = self._tally["records"]
        self.shutdown()
        finish = getattr(self._monitor, "flush" if before else "close", None)
        if self._tally["records"] > before and callable(finish):
            with contextlib.suppress(Exception):
                finish(_EXIT_SECONDS)

    def _run(self) -> None:
        wake, lock = self._wake, self._lock
        # In a forked child the lock is another one, and this thread is not there any more.
        while not self._closed and lock is self._lock:
            self._idle = not (len(self._turns) or self._extractor.waiting or self._inbox)
            wake.wait(None if self._idle and not self._inbox else self._tick)
            wake.clear()
            self._idle = False
            with lock:
                self._work()

    def _work(self, *, force: bool = False, everything: bool = False) -> None:
        """Look at what has come, and hand over what is complete."""
        try:
            now = time.monotonic()
            self._sort(now)
            found = self._turns.rest() if everything else self._turns.ripe(now, force=force)
            if found:
                self._hand_over(self._extractor.extract(found))
            if self._extractor.waiting:
                self._hand_over(self._extractor.overdue(time.time_ns()))
            if everything:
                self._hand_over(self._extractor.close())
        except Exception as error:  # noqa: BLE001 - nothing of ours may end the thread or reach the application
            self._failed(error)

    def _sort(self, now: float) -> None:
        for _ in range(len(self._inbox)):
            span, flow = self._inbox.popleft()
            try:
                self._take(span, flow, now)
            except Exception as error:  # noqa: BLE001 - one odd span must not cost the others
                self._failed(error)

    def _take(self, span: ReadableSpan, flow: str | None, now: float) -> None:
        context, scope = span.context, span.instrumentation_scope
        name = scope.name if scope is not None else ""
        if is_own(name, context.trace_id):
            self._tally["own"] += flow is None
        elif flow is not None:
            parent = f"{span.parent.span_id:016x}" if span.parent is not None else None
            trace_id, span_id = f"{context.trace_id:032x}", f"{context.span_id:016x}"
            self._turns.start(Started(trace_id, span_id, parent, name, span.start_time or 0, flow), now)
        else:
            self._tally["spans"] += 1
            self._turns.end(from_sdk(span, content=content_of(context.span_id)), now)

    def _hand_over(self, reading: Extraction) -> None:
        self._tally["duplicates"] += reading.duplicates
        self._skipped.note(reading.diagnoses)
        self._diagnoses.extend(reading.diagnoses)
        for record in reading.records:
            try:
                self._monitor.submit(changed(record, self._on_record))
                self._tally["records"] += 1
                if self._tally["records"] == 1:
                    # The Monitor has begun with this one, and registered after us.
                    self._go_first_at_exit()
            except Exception as error:  # noqa: BLE001 - a Monitor never raises, but a stand-in for one might
                self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._errors += 1
        # Its message may quote the turn.
        message = "reading spans failed: %s; more failures are only counted"
        self._warn_once("failed", message, error_place(error))

    # What the application may call.

    @property
    def counts(self) -> SpanCounts:
        """What has become of every span and trace so far."""
        turns, tally = self._turns, self._tally
        return SpanCounts(
            spans=tally["spans"],
            own=tally["own"],
            records=tally["records"],
            duplicates=tally["duplicates"],
            skipped=dict(self._skipped.counts),
            evicted_traces=turns.evicted,
            dropped_spans=self._dropped,
            late_spans=self._extractor.late,
            repeated_spans=turns.repeated,
            never_ended=turns.never_ended,
            errors=self._errors + self._extractor.errors,
            open_traces=len(turns),
        )

    @property
    def diagnoses(self) -> tuple[NoRecord, ...]:
        """Why the latest candidates gave no Record, and which switch to turn."""
        return tuple(self._diagnoses)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Hand over every turn whose spans have all ended, without waiting for the quiet period.

        Functions of yours (`on_record`) may take longer than there is time, so that the work is done on a
        thread of its own, which goes on if the time is up.

        Returns:
            Whether all of them were handed over in time. What waits for a later span, such as passages whose
            answer has not begun, stays where it is.
        """
        deadline = time.monotonic() + max(timeout_millis, 0) / 1000
        return done_within(deadline, lambda: self._flush(deadline))

    def _flush(self, deadline: float) -> bool:
        lock = self._lock
        if not lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            return False
        try:
            errors = self._errors
            self._work(force=True)
            return self._errors == errors
        finally:
            lock.release()

    def shutdown(self) -> None:
        """Hand over what there is, complete or not, and stop."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        self._wake.set()
        with self._lock:
            self._work(everything=True)


def _id_of(span: ReadableSpan) -> int:
    """A span's id; 0 for an odd one, which must not raise where it ends."""
    context = getattr(span, "context", None)
    return getattr(context, "span_id", 0)


def _call_if_there(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    """Call a method of an object that may be gone: `atexit` never lets go of its argument."""
    if (found := method()) is not None:
        found()


def _default_monitor() -> TurnTarget:
    from steelyard.online import default_monitor

    return default_monitor()
