from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, get_current_span

from sinks.making import TRACE, failed, make_evaluation, make_score
from steelyard import Monitor, Record, __version__
from steelyard.errors import JudgeRejected, SinkError
from steelyard.judge.middleware import Cache, CircuitBreaker
from steelyard.metrics import AspectCritique
from steelyard.questions import Answer, Question, Request, YesNo
from steelyard.record import TraceRef
from steelyard.recording import current_trace, unrecorded
from steelyard.scores import Evaluation, Score
from steelyard.sinks import OpenTelemetrySink, ScoreCounts, Sink, observe_monitor
from steelyard.testing import MemorySink, ScriptedJudge
from steelyard_opentelemetry import EvaluationSpanProcessor


class Telemetry:
    """Real providers that keep what they get."""

    def __init__(self) -> None:
        self.spans, self.logs, self.reader = (
            InMemorySpanExporter(),
            InMemoryLogRecordExporter(),  # type: ignore[no-untyped-call]
            InMemoryMetricReader(),
        )
        self.tracers = TracerProvider(shutdown_on_exit=True)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.loggers = LoggerProvider()
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        self.meters = MeterProvider([self.reader])

    def sink(self, **options: Any) -> OpenTelemetrySink:
        return OpenTelemetrySink(
            tracer_provider=self.tracers, logger_provider=self.loggers, meter_provider=self.meters, **options
        )

    def turn(self) -> tuple[TraceRef, Span]:
        """A RAG span that has ended, and what a recorder noted of it."""
        with self.tracers.get_tracer("app").start_as_current_span("rag") as span:
            ref = current_trace(framework="langchain")
        return ref, span

    def evaluation_span(self) -> ReadableSpan:
        (found,) = (span for span in self.spans.get_finished_spans() if span.name == "evaluation")
        return found

    def events(self) -> list[dict[str, Any]]:
        return [dict(log.log_record.attributes or {}) for log in self.logs.get_finished_logs()]

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        found: dict[str, list[Any]] = {}
        for resource in data.resource_metrics if data else []:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found[metric.name] = list(metric.data.data_points)
        return found

    def close(self) -> None:
        self.tracers.shutdown()
        self.loggers.shutdown()
        self.meters.shutdown()


@pytest.fixture
def telemetry() -> Any:
    made = Telemetry()
    yield made
    if made.tracers._atexit_handler is not None:
        made.close()


def write(sink: Sink, *evaluations: Evaluation) -> None:
    async def run() -> None:
        with unrecorded():  # as the Monitor does
            await sink.write(evaluations)
        await sink.aclose()

    asyncio.run(run())


def test_an_event_per_score_in_the_scored_spans_context(telemetry: Telemetry) -> None:
    ref, span = telemetry.turn()
    skipped = Score.not_applicable("m", cause="missing_answer", explanation="the record has no answer")
    write(telemetry.sink(), make_evaluation("a", make_score(), failed(), skipped, trace=ref))
    logs = telemetry.logs.get_finished_logs()
    assert {log.log_record.event_name for log in logs} == {"gen_ai.evaluation.result"}
    for log in logs:
        assert log.log_record.trace_id == span.get_span_context().trace_id
        assert log.log_record.span_id == span.get_span_context().span_id
        assert log.log_record.timestamp == 1_700_000_000 * 10**9
    scored, failure, absent = telemetry.events()
    assert scored["gen_ai.evaluation.name"] == "faithfulness"
    assert scored["gen_ai.evaluation.score.value"] == 0.75
    assert scored["gen_ai.evaluation.score.label"] == "pass"
    assert scored["gen_ai.evaluation.explanation"] == "One of two claims is not supported."
    assert scored["steelyard.evaluation.inclusion_probability"] == 0.1
    assert scored["steelyard.evaluation.verdicts"] == 2
    assert scored["steelyard.judge.name"] == "local-lexical"
    assert scored["steelyard.metric.version"] == "2"
    assert "error.type" not in scored
    assert failure["error.type"] == "timeout"
    assert "gen_ai.evaluation.score.value" not in failure
    assert absent["gen_ai.evaluation.score.label"] == "not_applicable"
    assert "error.type" not in absent
    assert "gen_ai.evaluation.score.value" not in absent


def test_one_evaluation_span_in_a_trace_of_its_own_and_linked_to_the_rag_span(telemetry: Telemetry) -> None:
    ref, rag = telemetry.turn()
    write(telemetry.sink(), make_evaluation("a", trace=ref))
    span = telemetry.evaluation_span()
    context = rag.get_span_context()
    assert span.parent is None
    assert span.context is not None
    assert span.context.trace_id != context.trace_id
    assert [(link.context.trace_id, link.context.span_id) for link in span.links] == [
        (context.trace_id, context.span_id)
    ]
    assert span.instrumentation_scope is not None
    assert (span.instrumentation_scope.name, span.instrumentation_scope.version) == ("steelyard", __version__)
    assert span.end_time == 1_700_000_000 * 10**9
    assert span.end_time - (span.start_time or 0) == 700_000_000
    attributes = dict(span.attributes or {})
    assert attributes["gen_ai.operation.name"] == "evaluation"
    assert attributes["openinference.span.kind"] == "EVALUATOR"
    assert attributes["steelyard.judge.input_tokens"] == 500
    assert attributes["steelyard.judge.output_tokens"] == 40
    assert not [name for name in attributes if name.startswith(("gen_ai.usage", "llm.token_count"))]
    assert attributes["steelyard.judge.cost"] == 0.002
    assert attributes["steelyard.judge.seconds"] == 0.6
    assert attributes["steelyard.faithfulness.score"] == 0.75
    assert attributes["evaluations.0.evaluation.name"] == "faithfulness"
    assert attributes["evaluations.1.evaluation.label"] == "failed"
    assert "evaluations.1.evaluation.score" not in attributes


def test_without_a_trace_the_evaluation_span_is_a_root_and_events_belong_to_it(telemetry: Telemetry) -> None:
    write(telemetry.sink(), make_evaluation("a", trace=None))
    span = telemetry.evaluation_span()
    assert span.parent is None
    (first, _) = telemetry.logs.get_finished_logs()
    assert span.context is not None
    assert first.log_record.span_id == span.context.span_id


def test_below_the_rag_span_on_request(telemetry: Telemetry) -> None:
    ref, rag = telemetry.turn()
    write(telemetry.sink(new_trace=False), make_evaluation("a", trace=ref))
    span = telemetry.evaluation_span()
    context = rag.get_span_context()
    assert span.parent is not None
    assert (span.parent.trace_id, span.parent.span_id) == (context.trace_id, context.span_id)
    assert [link.context.trace_id for link in span.links] == [context.trace_id]


def test_each_score_is_counted_once(telemetry: Telemetry) -> None:
    sink = telemetry.sink()
    write(sink, make_evaluation("a"), make_evaluation("b"), make_evaluation("a"))
    assert sink.counts == ScoreCounts(written=4)


def test_the_same_results_again_are_not_emitted_twice(telemetry: Telemetry) -> None:
    sink = telemetry.sink()
    write(sink, make_evaluation("a"))
    write(sink, make_evaluation("a"), make_evaluation("b"))
    assert len(telemetry.events()) == 4
    assert len(telemetry.spans.get_finished_spans()) == 2


def test_explanations_can_be_left_out(telemetry: Telemetry) -> None:
    write(telemetry.sink(explanations=False), make_evaluation("a"))
    texts = [*telemetry.events(), dict(telemetry.evaluation_span().attributes or {})]
    assert not any("explanation" in key for text in texts for key in text)


def test_metrics_with_exemplars_that_lead_to_the_scored_span(telemetry: Telemetry) -> None:
    ref, rag = telemetry.turn()
    write(telemetry.sink(), make_evaluation("a", trace=ref))
    points = telemetry.points()
    (score,) = points["gen_ai.evaluation.score"]
    assert list(score.explicit_bounds) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert (score.count, score.sum) == (1, 0.75)
    assert [exemplar.span_id for exemplar in score.exemplars] == [rag.get_span_context().span_id]
    (duration,) = points["gen_ai.evaluation.client.operation.duration"]
    (cost,) = points["gen_ai.evaluation.client.usage.cost"]
    assert (duration.sum, cost.sum) == (0.7, 0.002)
    # A tenth of a second and a tenth of a cent have buckets of their own.
    assert {0.01, 0.1, 1.0, 10.0} < set(duration.explicit_bounds)
    assert {0.0001, 0.001, 0.01} < set(cost.explicit_bounds)
    outcomes = {
        p.attributes["steelyard.evaluation.status"]: p.value for p in points["steelyard.evaluation.outcomes"]
    }
    assert outcomes == {"scored": 1, "failed": 1}
    tokens = {p.attributes["steelyard.token.type"]: p.value for p in points["steelyard.judge.tokens"]}
    assert tokens == {"input": 500, "output": 40}


def test_no_label_holds_an_id_or_free_text(telemetry: Telemetry) -> None:
    write(telemetry.sink(), make_evaluation("record-77"))
    labels = str([dict(point.attributes) for points in telemetry.points().values() for point in points])
    assert not any(
        text in labels for text in (TRACE.trace_id or "", TRACE.span_id or "", "record-77", "claim")
    )


def test_the_weighted_counters_give_the_unbiased_mean(telemetry: Telemetry) -> None:
    sink = telemetry.sink()
    # Ten bad turns, all judged, and a tenth of a hundred good ones: the truth is 100/110.
    bad = [make_evaluation(f"b{n}", make_score("m", 0.0, inclusion_probability=1.0)) for n in range(10)]
    good = [make_evaluation(f"g{n}", make_score("m", 1.0, inclusion_probability=0.1)) for n in range(10)]
    write(sink, *bad, *good)
    points = telemetry.points()
    mean = (
        points["steelyard.evaluation.weighted_sum"][0].value / points["steelyard.evaluation.weight"][0].value
    )
    assert mean == pytest.approx(100 / 110)


def test_negative_values_have_a_counter_of_their_own(telemetry: Telemetry) -> None:
    negative = make_score("m", -0.5, inclusion_probability=0.5)
    write(telemetry.sink(), make_evaluation("a", make_score("m", 1.0, inclusion_probability=1.0), negative))
    points = telemetry.points()
    assert points["steelyard.evaluation.weighted_sum"][0].value == 1.0
    assert points["steelyard.evaluation.weighted_sum.negative"][0].value == 1.0
    assert points["steelyard.evaluation.weight"][0].value == 3.0


def test_our_own_spans_are_exported_but_never_recorded(telemetry: Telemetry) -> None:
    memory = MemorySink()
    monitor = Monitor(metrics=[], sinks=[memory])
    recorder = EvaluationSpanProcessor(monitor)
    telemetry.tracers.add_span_processor(recorder)
    write(telemetry.sink(), make_evaluation("a"))
    recorder.force_flush()
    monitor.flush(5)
    assert len(telemetry.spans.get_finished_spans()) == 1
    assert memory.evaluations == []
    monitor.close()


def test_through_a_monitor(telemetry: Telemetry) -> None:
    monitor = Monitor(metrics=[], sinks=[telemetry.sink()])
    ref, rag = telemetry.turn()
    monitor.submit(Record(question="Why?", answer="Because.", trace=ref))
    assert monitor.flush(10) == 0
    span = telemetry.evaluation_span()
    assert [link.context.span_id for link in span.links] == [rag.get_span_context().span_id]
    points = telemetry.points()
    assert points["gen_ai.evaluation.client.queue.size"][0].value == 0
    decisions = {p.attributes["steelyard.decision"]: p.value for p in points["steelyard.turns.decisions"]}
    assert decisions["accepted"] == 1
    outcomes = {p.attributes["steelyard.outcome"]: p.value for p in points["steelyard.turns.outcomes"]}
    assert outcomes["evaluated"] == 1
    sinks = {p.attributes["steelyard.outcome"]: p.value for p in points["steelyard.sink.results"]}
    assert sinks == {"written": 1, "lost": 0}
    monitor.close()


def test_a_monitor_that_is_gone_or_broken_is_not_observed(telemetry: Telemetry) -> None:
    class Broken:
        def stats(self) -> Any:
            raise RuntimeError("no")

    broken = Broken()
    observe_monitor(broken, meter_provider=telemetry.meters)
    assert "gen_ai.evaluation.client.queue.size" not in telemetry.points()
    seen = weakref.ref(broken)
    del broken
    gc.collect()
    assert seen() is None
    assert "gen_ai.evaluation.client.queue.size" not in telemetry.points()


def test_what_several_monitors_say_is_added_up(telemetry: Telemetry) -> None:
    monitors = [Monitor(metrics=[], sinks=[telemetry.sink()]) for _ in range(2)]
    observe_monitor(monitors[0], meter_provider=telemetry.meters)  # the sink has done so already
    for monitor in monitors:
        monitor.submit(Record(question="Why?", answer="Because."))
        monitor.close(10)
    decisions = telemetry.points()["steelyard.turns.decisions"]
    assert [(p.attributes["steelyard.decision"], p.value) for p in decisions] == [("accepted", 2)]


def test_a_sink_that_cannot_observe_costs_no_monitor(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(MemorySink):
        def observe(self, monitor: object) -> None:
            raise RuntimeError("no meters today")

    Monitor(metrics=[], sinks=[Odd()]).close()
    assert "RuntimeError" in caplog.text and "no meters today" not in caplog.text


def test_a_monitor_without_a_provider_reports_to_the_one_that_is_set_later() -> None:
    check = """
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from steelyard import Monitor, Record, __version__
from steelyard.sinks import OpenTelemetrySink
before = Monitor(metrics=[], sinks=[OpenTelemetrySink()])
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
after = Monitor(metrics=[], sinks=[OpenTelemetrySink()])
for monitor in (before, after):
    monitor.submit(Record(question="Why?", answer="Because."))
    monitor.flush(10)
[resource] = reader.get_metrics_data().resource_metrics
found = {m.name: m.data.data_points for s in resource.scope_metrics for m in s.metrics}
assert [point.value for point in found["steelyard.turns.decisions"]] == [2], found
"""
    subprocess.run([sys.executable, "-c", check], check=True)


def test_cache_hits_and_breaker_states(telemetry: Telemetry) -> None:
    def turn_away(question: Question, request: Request) -> Answer:
        raise JudgeRejected("no such key", cause="unauthorized")

    kept = Cache(CircuitBreaker(ScriptedJudge(lambda question, request: YesNo(value=True), name="kept")))
    metrics = [
        AspectCritique(aspect="polite", criterion="Is it polite?", judge=kept),
        AspectCritique(aspect="brief", criterion="Is it brief?"),
    ]
    monitor = Monitor(
        metrics=metrics,
        judge=CircuitBreaker(ScriptedJudge(turn_away, name="rejecting")),
        sinks=[telemetry.sink()],
    )
    assert monitor.stats().breakers == {"rejecting": "closed", "kept": "closed"}
    for name in ("first", "second"):
        monitor.submit(Record(id=name, question="Why?", answer="Because."))
        monitor.flush(10)
    monitor.close()
    assert monitor.stats().breakers == {"rejecting": "rejected", "kept": "closed"}
    assert monitor.stats().cache_hits == 1
    points = telemetry.points()
    assert points["steelyard.judge.cache.hits"][0].value == 1
    states = {p.attributes["steelyard.judge.name"]: p.value for p in points["steelyard.judge.breaker.open"]}
    assert states == {"rejecting": 1, "kept": 0}


def test_without_providers_the_reasons_are_counted() -> None:
    sink = OpenTelemetrySink()
    write(sink, make_evaluation("a"))
    assert sink.undelivered == {"span:no_provider": 1, "event:no_provider": 2, "metrics:no_provider": 1}


def test_an_unsampled_span_still_gets_its_event(telemetry: Telemetry) -> None:
    sink = telemetry.sink()
    ref = TraceRef(trace_id=TRACE.trace_id, span_id=TRACE.span_id, sampled=False)
    write(sink, make_evaluation("a", trace=ref))
    assert telemetry.spans.get_finished_spans() == ()
    assert len(telemetry.events()) == 2
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


def test_an_exporter_that_hangs_holds_up_neither_the_loop_nor_other_sinks() -> None:
    free = threading.Event()

    class Hangs(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            free.wait(20)
            return SpanExportResult.SUCCESS

    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(Hangs()))
    memory = MemorySink()
    monitor = Monitor(
        metrics=[], sinks=[OpenTelemetrySink(tracer_provider=tracers), memory], sink_timeout=0.2
    )
    started = time.monotonic()
    monitor.submit(Record(question="Why?", answer="Because."))
    assert monitor.flush(10) == 0
    assert time.monotonic() - started < 5
    assert len(memory.evaluations) == 1
    assert monitor.stats().sinks["opentelemetry"].lost == 1
    monitor.close()
    free.set()
    tracers.shutdown()


def test_while_a_write_hangs_the_next_fails_at_once() -> None:
    free = threading.Event()

    class Hangs(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            free.wait(20)

    tracers = TracerProvider()
    tracers.add_span_processor(Hangs())
    sink = OpenTelemetrySink(tracer_provider=tracers)

    async def run() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(sink.write([make_evaluation("a")]), 0.1)
        with pytest.raises(SinkError, match="still hangs"):
            await sink.write([make_evaluation("b")])
        free.set()
        await asyncio.sleep(0.1)
        await sink.write([make_evaluation("c")])

    asyncio.run(run())
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
