from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from otel_holding import Rig, scores

from steelyard import Monitor
from steelyard.record import TraceRef
from steelyard_opentelemetry import EvaluationSpanProcessor, HoldingSpanProcessor


def test_a_wrapped_processor_that_raises_reaches_nobody() -> None:
    class Raises(SpanProcessor):
        def on_start(self, span: Span, parent_context: Any = None) -> None:
            raise RuntimeError("boom")

        def _on_ending(self, span: Span) -> None:
            raise RuntimeError("boom")

        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("boom")

        def shutdown(self) -> None:
            raise RuntimeError("boom")

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            raise RuntimeError("boom")

    holding = HoldingSpanProcessor(Raises())
    provider = TracerProvider()
    provider.add_span_processor(holding)
    with provider.get_tracer("app").start_as_current_span("x"):
        pass
    assert provider.force_flush() is False
    provider.shutdown()
    assert holding.counts.errors == 5


def test_scores_timeouts_and_flushes_at_once_lose_and_double_nothing() -> None:
    rig = Rig(max_hold=0.02, max_held=50)
    refs: list[TraceRef] = []
    stop = threading.Event()

    def make() -> None:
        refs.extend(rig.turn() for _ in range(150))

    def score() -> None:
        while not stop.is_set():
            for ref in refs[-20:]:
                rig.holding.attach(scores(ref))
            time.sleep(0.001)

    def flush() -> None:
        while not stop.is_set():
            rig.provider.force_flush()
            time.sleep(0.005)

    makers = [threading.Thread(target=make) for _ in range(3)]
    others = [threading.Thread(target=work) for work in (score, flush)]
    for thread in (*makers, *others):
        thread.start()
    for thread in makers:
        thread.join()
    stop.set()
    for thread in others:
        thread.join()
    rig.provider.shutdown()
    ids = Counter(span.context.span_id for span in rig.exported.get_finished_spans() if span.context)
    assert len(ids) == 900
    assert set(ids.values()) == {1}
    assert sum(rig.holding.counts.released.values()) == 450


def test_where_no_thread_can_be_started_roots_go_out_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    rig.turn()
    assert rig.names == ["docs", "rag"]
    rig.provider.force_flush()
    assert rig.names == ["docs", "rag"]


def test_scores_that_cannot_be_written_do_not_cost_the_span(rig: Rig) -> None:
    ref = rig.turn()
    broken = scores(ref).replace(scores=(None,))
    rig.holding.attach(broken)
    assert rig.names == ["docs", "rag"]
    assert rig.holding.counts.errors == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_export_the_parents_roots(rig: Rig) -> None:
    rig.turn()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            rig.holding.force_flush()
            rig.turn()
            held = rig.holding.counts.holding
            code = 0 if rig.names == ["docs", "docs"] and held == 1 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert rig.holding.counts.holding == 1


class _EndsInside:
    """Ends a root in the middle of the processor's own bookkeeping, as a finalizer does."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.ended = 0

    def __call__(self, span: Any, *, until: float) -> list[ReadableSpan]:
        self._rig.holding._pending.__class__.hold(self._rig.holding._pending, span, until=until)
        if not self.ended:
            self.ended += 1
            self._rig.turn(inner=True)
        return []


def test_a_span_that_ends_inside_the_bookkeeping_goes_out_at_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig.holding._pending, "hold", _EndsInside(rig))
    ref = rig.turn()
    assert rig.names == ["docs", "docs", "rag"]
    assert rig.holding.attach(scores(ref))
    assert rig.names == ["docs", "docs", "rag", "rag"]
    assert rig.holding.counts.holding == 0


class _Names(SpanExporter):
    """Keeps names without a lock: the SDK's exporter in memory would wait for its own, interrupted thread."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.names.extend(span.name for span in spans)
        return SpanExportResult.SUCCESS


@pytest.mark.timeout(180, method="thread")  # the other method needs the timer that this test uses
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that interrupt")
def test_spans_that_end_in_a_signal_handler_never_hang_the_program() -> None:
    exported, rig, ended = _Names(), Rig(), 0
    rig.holding = HoldingSpanProcessor(SimpleSpanProcessor(exported))
    rig.provider = TracerProvider()
    rig.provider.add_span_processor(rig.holding)
    rig.tracer = rig.provider.get_tracer("app")

    def handler(number: int, frame: object) -> None:
        nonlocal ended
        rig.turn()
        ended += 1

    before = signal.signal(signal.SIGALRM, handler)
    try:
        count = 0
        while ended < 200:
            # One signal at a time: handlers that interrupt each other without end would exhaust the stack.
            signal.setitimer(signal.ITIMER_REAL, 0.00005 * (1 + count % 20))
            rig.turn()
            count += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rig.holding.force_flush(10_000)
    assert Counter(exported.names) == {"docs": count + ended, "rag": count + ended}
    rig.provider.shutdown()


class _Slow(SpanProcessor):
    """Takes its time over a flush, whatever time it is given."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.done = threading.Event()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        self.done.wait(self._seconds)
        return True


def test_a_flush_keeps_its_time_and_tells_the_truth() -> None:
    slow = _Slow(150)
    holding = HoldingSpanProcessor(slow)
    started = time.monotonic()
    assert not holding.force_flush(50)
    assert time.monotonic() - started < 60
    slow.done.set()
    assert holding.force_flush(60_000)
    holding.shutdown()


def test_a_flush_waits_for_a_root_that_is_on_its_way(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    left, go, export = threading.Event(), threading.Event(), rig.exported.export

    def slow(spans: Sequence[ReadableSpan]) -> SpanExportResult:
        left.set()
        go.wait(60)
        return export(spans)

    ref = rig.turn()
    monkeypatch.setattr(rig.exported, "export", slow)
    passing = threading.Thread(target=rig.holding.attach, args=(scores(ref, 1.0),))
    passing.start()
    assert left.wait(60)
    assert not rig.holding.force_flush(50)
    go.set()
    passing.join()
    assert rig.holding.force_flush(60_000)
    assert rig.names == ["docs", "rag"]


def test_odd_objects_never_raise_where_they_end(rig: Rig) -> None:
    odd: Any = object()
    rig.holding.on_start(odd)
    rig.holding.on_end(odd)
    assert rig.holding.counts.errors >= 2
    recorder = EvaluationSpanProcessor(Monitor(metrics=[], sinks=[]))
    recorder.on_start(odd)
    recorder.on_end(odd)
    recorder.shutdown()
