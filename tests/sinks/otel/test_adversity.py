"""Providers that are missing, shut down, broken or hanging, and processes that fork."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import pytest
from opentelemetry.sdk._logs import LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import get_current_span

from sinks.making import TRACE, make_evaluation
from sinks.otel.telemetry import Telemetry
from steelyard import Monitor, Record
from steelyard.errors import SinkError
from steelyard.record import TraceRef
from steelyard.results.counts import ScoreCounts
from steelyard.sinks import OpenTelemetrySink
from steelyard.testing import MemorySink
from writing import write


def test_without_providers_the_reasons_are_counted() -> None:
    sink = OpenTelemetrySink()
    write(sink, make_evaluation("a"))
    assert sink.undelivered == {"span:no_provider": 1, "event:no_provider": 2, "metrics:no_provider": 1}


@pytest.mark.parametrize("expected", [True, False])
def test_a_sink_that_nobody_asked_for_is_silent_without_providers(
    expected: bool, caplog: pytest.LogCaptureFixture
) -> None:
    sink = OpenTelemetrySink(expected=expected)
    for number in range(20):
        write(sink, make_evaluation(f"r{number}"))
    assert sink.counts.left_out == {"no_provider": 40}
    assert ("has written none" in caplog.text) is expected


def test_an_unsampled_span_still_gets_its_event(telemetry: Telemetry) -> None:
    sink = telemetry.sink()
    ref = TraceRef(trace_id=TRACE.trace_id, span_id=TRACE.span_id, sampled=False)
    write(sink, make_evaluation("a", trace=ref))
    assert telemetry.spans.get_finished_spans() == ()
    assert [log.log_record.trace_flags for log in telemetry.logs.get_finished_logs()] == [0, 0]
    assert sink.undelivered == {"span:scored_span_unsampled": 1}


@pytest.mark.parametrize(
    "ref", [TraceRef(trace_id="xyz", span_id="1"), TraceRef(trace_id="0" * 32, span_id="1")]
)
def test_an_impossible_trace_id_counts_as_none(telemetry: Telemetry, ref: TraceRef) -> None:
    write(telemetry.sink(), make_evaluation("a", trace=ref))
    assert telemetry.evaluation_span().parent is None


def test_a_provider_that_was_shut_down_is_counted(telemetry: Telemetry) -> None:
    sink = telemetry.sink()
    telemetry.close()
    write(sink, make_evaluation("a"))
    assert sink.undelivered["span:provider_shut_down"] == 1
    assert sink.undelivered["event:provider_shut_down"] == 2
    assert sink.undelivered["metrics:provider_shut_down"] == 1
    assert sink.counts == ScoreCounts(lost={"provider_shut_down": 2})


def test_processors_that_raise_cost_only_their_own_signal(telemetry: Telemetry) -> None:
    class Raises(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("boom")

    class RaisesToo(LogRecordProcessor):
        def on_emit(self, log_record: ReadWriteLogRecord) -> None:
            raise ValueError("boom")

        def shutdown(self) -> None: ...

        def force_flush(self, timeout_millis: int = 30000) -> bool:
            return True

    telemetry.tracers.add_span_processor(Raises())
    telemetry.loggers.add_log_record_processor(RaisesToo())
    sink = telemetry.sink()
    write(sink, make_evaluation("a"))
    assert sink.undelivered == {"span:RuntimeError": 1, "event:ValueError": 1}
    assert telemetry.points()["gen_ai.evaluation.score"][0].count == 1
    assert not sink.counts.lost
    telemetry.meters.shutdown()
    write(sink, make_evaluation("b"))
    # Nothing of it has arrived; of several reasons the first by name is given.
    assert sink.counts.lost == {"RuntimeError": 2}


def test_an_exporter_that_hangs_holds_up_neither_the_loop_nor_other_sinks() -> None:
    free = threading.Event()

    class Hangs(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            free.wait(150)
            return SpanExportResult.SUCCESS

    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(Hangs()))
    memory = MemorySink()
    monitor = Monitor(metrics=[], sinks=[OpenTelemetrySink(tracer_provider=tracers), memory], sink_timeout=1)
    started = time.monotonic()
    monitor.submit(Record(question="Why?", answer="Because."))
    assert monitor.flush(60) == 1  # what the hanging one lost
    assert time.monotonic() - started < 50
    assert len(memory.evaluations) == 1
    assert monitor.stats().sinks["opentelemetry"].lost == 1
    monitor.close()
    free.set()
    tracers.shutdown()


async def test_while_a_write_hangs_the_next_fails_at_once() -> None:
    free = threading.Event()

    class Hangs(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            free.wait(150)

    tracers = TracerProvider()
    tracers.add_span_processor(Hangs())
    sink = OpenTelemetrySink(tracer_provider=tracers)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(sink.write([make_evaluation("a")]), 0.1)
    with pytest.raises(SinkError, match="still hangs"):
        await sink.write([make_evaluation("b")])
    free.set()
    await asyncio.sleep(0.1)
    await sink.write([make_evaluation("c")])
    tracers.shutdown()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_emits_from_a_thread_of_its_own(telemetry: Telemetry) -> None:
    sink = telemetry.sink()
    asyncio.run(sink.write([make_evaluation("parent")]))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(asyncio.wait_for(sink.write([make_evaluation("child")]), 10))
            code = 0 if len(telemetry.spans.get_finished_spans()) == 2 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_the_current_context_is_left_as_it_was(telemetry: Telemetry) -> None:
    with telemetry.tracers.get_tracer("app").start_as_current_span("mine") as mine:
        write(telemetry.sink(), make_evaluation("a"))
        assert get_current_span() is mine


def test_importing_the_room_needs_no_opentelemetry() -> None:
    code = "import sys, steelyard.sinks; assert not [m for m in sys.modules if m.startswith('opentelemetry')]"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
