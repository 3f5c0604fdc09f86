"""Scores on the RAG span itself: a processor that holds the root span back until they are there.

A span cannot be changed after it has ended, and judging takes longer than answering. So the root, and only
the root, waits here for a bounded time; it goes out once, with its scores or without.

Spans end in finalizers, which the garbage collector runs anywhere, and in signal handlers, which run between
any two instructions of the main thread: also while that thread is in the middle of the bookkeeping. Such a
span goes out at once.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from steelyard._internal.forks import in_children
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.record import TraceRef
from steelyard.recording import check_positive
from steelyard.scores import Evaluation
from steelyard.sinks import diagnosis_attributes, span_attributes
from steelyard_opentelemetry._pending import HoldingCounts, PendingSpans, done_within
from steelyard_opentelemetry._span import is_own
from steelyard_opentelemetry.dialects import retrieves

if TYPE_CHECKING:
    from steelyard.online import Monitor

_log = SafeLogger("steelyard.opentelemetry")
# A clock that jumps, or a signal that is lost, delays a root by so much at most.
_LOOK = 0.5
# Decisions that come faster than the watcher takes them; a root then leaves when its time is up.
_MOST_NOTED = 10_000


class HoldingSpanProcessor(SpanProcessor):
    """Wraps the processor that exports, and writes scores onto root spans before they reach it.

    Spans other than roots go to the wrapped processor at once, and so do roots of traces in which nothing
    was retrieved. The root of a RAG turn waits for its Evaluation, at most `max_hold` seconds. Nothing is
    lost and nothing goes out twice: a root leaves on its scores, when its turn is not judged, when its time
    is up, when there are too many, and on flush and shutdown, whichever is first. A process that is killed
    (SIGKILL) loses the roots it holds, as it loses what waits in a batch. Scores that come while the root is
    still open are on it when it ends; scores that come too late are counted and stand in the
    `gen_ai.evaluation.result` event only.

    Example:
        ```python
        provider.add_span_processor(EvaluationSpanProcessor(monitor))
        provider.add_span_processor(HoldingSpanProcessor(OTLPSpanExporter(), monitor=monitor))
        ```
    """

    def __init__(
        self,
        wrapped: SpanProcessor | SpanExporter,
        *,
        monitor: Monitor | None = None,
        max_hold: float = 10.0,
        max_held: int = 10_000,
        max_bytes: int = 64 * 1024 * 1024,
        select: Callable[[ReadableSpan], bool] | None = None,
        explanations: bool = True,
    ) -> None:
        """Nothing runs until the first root is held; then one daemon thread watches the time.

        Args:
            wrapped: The processor that exports, or an exporter, for which a batch processor is made.
            monitor: Whose Evaluations to write; without one, pass them to `attach`.
            max_hold: Seconds a root is held at most.
            max_held: Roots held at the same time; the oldest leaves if there are more.
            max_bytes: Roughly how many bytes of attributes the held roots may keep alive.
            select: Which local roots to hold; by default those of traces in which something was retrieved.
            explanations: Whether to write the judges' words.

        Raises:
            ConfigurationError: If a limit is not positive.
        """
        for name, limit in (("max_hold", max_hold), ("max_held", max_held), ("max_bytes", max_bytes)):
            check_positive(name, limit)
        self._wrapped = BatchSpanProcessor(wrapped) if isinstance(wrapped, SpanExporter) else wrapped
        self._max_hold, self._max_held, self._max_bytes = max_hold, max_held, max_bytes
        self._select = select
        self._explanations = explanations
        self._late = self._errors = 0
        self._warn_once = WarnOnce(_log)
        self._closed = False
        self._begin()
        in_children(self._begin)
        if monitor is not None:
            monitor.on_evaluation(self.attach)
            monitor.on_decision(self._hear)

    def _begin(self) -> None:
        """A fresh start, also in a forked child: what was held is the parent's to export."""
        self._changed = threading.Condition(threading.RLock())
        self._owner = 0
        self._pending = PendingSpans(most=self._max_held, most_bytes=self._max_bytes)
        self._unseen: deque[ReadableSpan] = deque()
        self._not_judged: deque[TraceRef | None] = deque(maxlen=_MOST_NOTED)
        self._leaving = 0
        self._watcher: threading.Thread | None = None

    @contextmanager
    def _bookkeeping(self) -> Iterator[bool]:
        """One thread at a time keeps books; False if it is in the middle of that, and may touch nothing."""
        if self._owner == threading.get_ident():
            yield False
            return
        with self._changed:
            self._owner = threading.get_ident()
            try:
                # Roots that ended when they could touch nothing, and went out.
                while self._unseen:
                    self._pending.end(self._unseen.popleft())
                yield True
            finally:
                self._owner = 0

    @property
    def counts(self) -> HoldingCounts:
        """What has become of the roots and the scores so far."""
        with self._bookkeeping():
            return HoldingCounts(
                holding=len(self._pending.held),
                bytes=self._pending.bytes,
                released=dict(self._pending.released),
                late=self._late,
                errors=self._errors,
            )

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Remember open roots, so that scores may come before the end."""
        # The wrapped processor goes first: what is ours may fail, its spans may not.
        self._guarded(lambda: self._wrapped.on_start(span, parent_context))
        self._guarded(lambda: self._remember(span))

    def _remember(self, span: Span) -> None:
        if _is_local_root(span) and span.context is not None:
            with self._bookkeeping() as entered:
                if entered:
                    self._pending.begin(span)

    def _on_ending(self, span: Span) -> None:
        self._guarded(lambda: self._wrapped._on_ending(span))

    def on_end(self, span: ReadableSpan) -> None:
        """Hold a RAG root back; pass everything else on."""
        try:
            out = self._sort(span)
        except Exception as error:  # noqa: BLE001 - a user's `select` may raise anything, and the span must go out
            self._complain(error)
            out = [span]
        for one in out:
            self._pass_on(one)

    def _sort(self, span: ReadableSpan) -> list[ReadableSpan]:
        """What may go out now."""
        scope, context = span.instrumentation_scope, span.context
        if context is None or is_own(scope.name if scope else "", context.trace_id):
            return [span]
        # `retrieves` reads the attributes, and is asked only where the trace has not said so already.
        hinted = self._pending.is_retrieving(context.trace_id)
        if not _is_local_root(span):
            self._note(span, context.trace_id, hinted=hinted)
            return [span]
        wanted = self._select(span) if self._select else hinted or retrieves(span)
        with self._bookkeeping() as entered:
            if not entered:
                self._unseen.append(span)
                return [span]
            # Scores may come before the end of the root, where its answer was read from inner spans.
            early = self._pending.end(span)
            if early:
                return [_with_scores(span, early, explanations=self._explanations)]
            if not wanted or self._closed:
                return [span]
            self._start_watching()  # first: where no thread can be started any more, nothing may be held
            out = self._pending.hold(span, until=time.monotonic() + self._max_hold)
            self._changed.notify_all()
            return out

    def _note(self, span: ReadableSpan, trace_id: int, *, hinted: bool) -> None:
        if self._select is None and not hinted and retrieves(span):
            self._pending.mark_retrieving(trace_id)

    def _start_watching(self) -> None:
        if self._watcher is None:
            watcher = threading.Thread(target=self._watch, name="steelyard-holding", daemon=True)
            watcher.start()
            self._watcher = watcher

    def attach(self, evaluation: Evaluation) -> bool:
        """Write an Evaluation's scores onto its root span.

        The scored span itself is meant, or where that is not held, the root of its trace.

        Returns:
            Whether the span was still here.
        """
        try:
            return self._attach(evaluation)
        except Exception as error:  # noqa: BLE001 - may be called from the application
            self._complain(error)
            return False

    def _attach(self, evaluation: Evaluation) -> bool:
        with self._bookkeeping() as entered:
            span = self._pending.score(evaluation) if entered else False
            if isinstance(span, bool):
                self._late += 0 if span else 1
                return span
            # Counted before it is let go of, so that a flush at this moment waits for it.
            self._leaving += 1
        scored = self._guarded(lambda: _with_scores(span, [evaluation], explanations=self._explanations))
        self._let_go([scored or span])
        return True

    def _hear(self, trace: TraceRef | None, reason: str) -> None:
        """A turn will not be judged: let the watcher pass its root on. Called on any thread, so only noted.

        A duplicate is not judged because the same turn is judged already.
        """
        if reason in ("duplicate", "known"):
            return
        self._not_judged.append(trace)
        with self._bookkeeping() as entered:
            if entered:
                self._changed.notify_all()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Let all held roots go, scored or not, and flush the wrapped processor.

        The wrapped processor may take longer than it is given, so that it is flushed on a thread of its own,
        which goes on if the time is up.

        Returns:
            Whether all of it was done in time.
        """
        deadline = time.monotonic() + max(timeout_millis, 0) / 1000
        return done_within(deadline, lambda: self._flush(deadline))

    def _flush(self, deadline: float) -> bool:
        self._release_all("flush")
        if not self._wait_for_leaving(deadline):
            return False
        left = max(0, round((deadline - time.monotonic()) * 1000))
        return bool(self._guarded(lambda: self._wrapped.force_flush(left))) and time.monotonic() <= deadline

    def shutdown(self) -> None:
        """Let all held roots go and shut the wrapped processor down; from now on nothing is held."""
        self._closed = True
        self._release_all("shutdown")
        self._wait_for_leaving(time.monotonic() + 5)
        self._guarded(self._wrapped.shutdown)

    def _release_all(self, reason: str) -> None:
        with self._bookkeeping() as entered:
            out = [self._pending.take(span_id, reason) for span_id in list(self._pending.held) if entered]
            self._leaving += len(out)
            if entered:
                self._changed.notify_all()
        self._let_go(out)

    def _wait_for_leaving(self, deadline: float) -> bool:
        """A root that another thread has just taken must not miss the flush; whether all have left."""
        while self._leaving:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with self._changed:
                self._changed.wait(min(left, _LOOK))
        return True

    def _watch(self) -> None:
        while not self._closed:
            with self._bookkeeping():
                now = time.monotonic()
                out = self._pending.take_due(now)
                while self._not_judged:
                    out += self._pending.drop(self._not_judged.popleft())
                self._leaving += len(out)
                deadline = self._pending.next_deadline
            if out:
                self._let_go(out)
            elif not self._not_judged:
                with self._changed:
                    self._changed.wait(_LOOK if deadline is None else max(0.0, min(deadline - now, _LOOK)))

    def _let_go(self, spans: Sequence[ReadableSpan]) -> None:
        """Pass on spans that were counted as leaving."""
        try:
            for span in spans:
                self._pass_on(span)
        finally:
            with self._bookkeeping() as entered:
                self._leaving -= len(spans)
                if entered:
                    self._changed.notify_all()

    def _pass_on(self, span: ReadableSpan) -> None:
        self._guarded(lambda: self._wrapped.on_end(span))

    def _guarded(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - the host's processor may raise anything
            self._complain(error)
            return None

    def _complain(self, error: Exception) -> None:
        self._errors += 1
        self._warn_once(
            "raised",
            "a span could not be read, or the wrapped span processor raised %s; more errors are counted, "
            "and not logged",
            type(error).__name__,
        )


def _is_local_root(span: Any) -> bool:
    """Whether a span has no parent in this process."""
    return span.parent is None or span.parent.is_remote


def _with_scores(
    span: ReadableSpan, evaluations: Sequence[Evaluation], *, explanations: bool
) -> ReadableSpan:
    """The same span with scores and the last diagnosis, and the counts of what the SDK dropped from it."""
    old = dict(span.attributes or {})
    numbers = [key.split(".")[1] for key in old if key.startswith("evaluations.")]
    # Scores of another evaluator on the span keep their numbers; ours go on behind them.
    first = max((int(number) + 1 for number in numbers if number.isdecimal()), default=0)
    scores = [score for one in evaluations for score in one.scores]
    new = span_attributes(scores, explanations=explanations, first=first)
    for one in evaluations:
        new |= diagnosis_attributes(one)
    merged = BoundedAttributes(attributes={**old, **new})
    merged.dropped = span.dropped_attributes
    # A copy, for others may hold the span; an ended span has no way to set an attribute.
    scored = copy.copy(span)
    scored._attributes = merged
    return scored
