from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import asdict

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context
from otel_holding import Rig, ref_of, scores

from steelyard import Monitor
from steelyard.errors import ConfigurationError
from steelyard.questions import Reply, Request
from steelyard.record import Context, Record, TraceRef
from steelyard.testing import ScriptedJudge
from steelyard_opentelemetry import HoldingSpanProcessor
from waiting import until


def test_children_go_at_once_and_the_root_with_its_scores(rig: Rig) -> None:
    ref = rig.turn(mine=1)
    assert rig.names == ["docs"]
    assert rig.holding.attach(scores(ref, 0.5, 0.25))
    assert rig.names == ["docs", "rag"]
    assert dict(rig.root().attributes or {}) == {
        "mine": 1,
        "evaluations.0.evaluation.name": "metric_0",
        "evaluations.0.evaluation.score": 0.5,
        "evaluations.0.evaluation.label": "pass",
        "evaluations.0.evaluation.explanation": "fine",
        "evaluations.0.evaluation.annotator_kind": "LLM",
        "evaluations.0.evaluation.identifier": "id0",
        "evaluations.0.evaluation.metadata": (
            '{"steelyard.judge.name": "chat:m", "steelyard.judge.calibrated": false, '
            '"steelyard.evaluation.inclusion_probability": 1.0}'
        ),
        "steelyard.metric_0.score": 0.5,
        "evaluations.1.evaluation.name": "metric_1",
        "evaluations.1.evaluation.score": 0.25,
        "evaluations.1.evaluation.label": "pass",
        "evaluations.1.evaluation.explanation": "fine",
        "evaluations.1.evaluation.annotator_kind": "LLM",
        "evaluations.1.evaluation.identifier": "id1",
        "evaluations.1.evaluation.metadata": (
            '{"steelyard.judge.name": "chat:m", "steelyard.judge.calibrated": false, '
            '"steelyard.evaluation.inclusion_probability": 1.0}'
        ),
        "steelyard.metric_1.score": 0.25,
    }
    assert rig.holding.counts.released == {"scored": 1}


def test_of_two_open_roots_of_a_trace_each_gets_its_own_scores(rig: Rig) -> None:
    far = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1))
    above = set_span_in_context(NonRecordingSpan(far))
    first, second = (rig.tracer.start_span(name, context=above) for name in ("first", "second"))
    assert rig.holding.attach(scores(ref_of(first)))
    for root in (first, second):
        root.end()
    rig.provider.force_flush()
    found = {span.name: span.attributes or {} for span in rig.exported.get_finished_spans()}
    assert {name for name, one in found.items() if "steelyard.metric_0.score" in one} == {"first"}


def test_evaluations_the_user_put_there_are_kept(rig: Rig) -> None:
    ref = rig.turn(**{"evaluations.4.evaluation.name": "mine"})
    rig.holding.attach(scores(ref))
    attributes = rig.root().attributes or {}
    assert attributes["evaluations.4.evaluation.name"] == "mine"
    assert attributes["evaluations.5.evaluation.name"] == "metric_0"


def test_what_was_dropped_from_the_span_stays_counted() -> None:
    rig = Rig(limits=SpanLimits(max_span_attributes=2, max_events=1, max_links=1))
    with rig.tracer.start_as_current_span("rag", attributes={"a": 1, "b": 2, "retrieval.query": "q"}) as root:
        root.add_event("one")
        root.add_event("two")
    rig.holding.attach(scores(ref_of(root)))
    span = rig.root()
    assert (span.dropped_attributes, span.dropped_events) == (1, 1)
    assert (span.attributes or {})["steelyard.metric_0.score"] == 0.5
    assert span.resource is root.resource  # type: ignore[attr-defined]
    rig.provider.shutdown()


def test_a_trace_without_retrieval_is_not_held(rig: Rig) -> None:
    with rig.tracer.start_as_current_span("GET /health"), rig.tracer.start_as_current_span("select"):
        pass
    assert rig.names == ["select", "GET /health"]
    assert rig.holding.counts.holding == 0


def test_the_user_may_select_the_roots() -> None:
    rig = Rig(select=lambda span: span.name == "answer")
    rig.turn()
    with rig.tracer.start_as_current_span("answer"):
        pass
    assert rig.names == ["docs", "rag"]
    rig.provider.shutdown()
    assert rig.names == ["docs", "rag", "answer"]


def test_a_select_that_raises_loses_nothing() -> None:
    rig = Rig(select=lambda span: 1 / 0 > 1)
    rig.turn()
    assert rig.names == ["docs", "rag"]
    assert rig.holding.counts.errors == 1
    rig.provider.shutdown()


def test_scores_that_come_before_the_end_are_on_the_span(rig: Rig) -> None:
    with rig.tracer.start_as_current_span("rag") as root:
        assert rig.holding.attach(scores(ref_of(root)))
    assert (rig.root().attributes or {})["steelyard.metric_0.score"] == 0.5
    assert rig.holding.counts.holding == 0


def test_a_scored_span_below_the_root_puts_its_scores_on_the_root(rig: Rig) -> None:
    with rig.tracer.start_as_current_span("rag"), rig.tracer.start_as_current_span("retrieve") as inner:
        pass
    assert rig.holding.attach(scores(ref_of(inner)))
    assert (rig.root().attributes or {})["steelyard.metric_0.score"] == 0.5


def test_a_root_leaves_when_its_time_is_up() -> None:
    rig = Rig(max_hold=0.15)
    started = time.monotonic()
    ref = rig.turn()
    assert rig.names == ["docs"]
    while "rag" not in rig.names:
        assert time.monotonic() - started < 60
        time.sleep(0.005)
    assert time.monotonic() - started >= 0.15
    assert not rig.holding.attach(scores(ref))
    assert rig.names == ["docs", "rag"]
    counts = rig.holding.counts
    assert (counts.released, counts.late) == ({"timeout": 1}, 1)
    assert rig.provider.force_flush()
    rig.provider.shutdown()


def test_flush_and_shutdown_release(rig: Rig) -> None:
    rig.turn()
    assert rig.provider.force_flush()
    assert rig.names == ["docs", "rag"]
    rig.turn()
    rig.provider.shutdown()
    assert rig.holding.counts.released == {"flush": 1, "shutdown": 1}
    assert rig.holding.counts.holding == 0


def test_after_shutdown_nothing_is_held(rig: Rig) -> None:
    seen: list[str] = []

    class Sees(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            seen.append(span.name)

    holding = HoldingSpanProcessor(Sees())
    holding.shutdown()
    provider = TracerProvider()
    provider.add_span_processor(holding)
    with provider.get_tracer("app").start_as_current_span("retrieve"):
        pass
    assert seen == ["retrieve"]
    provider.shutdown()


@pytest.mark.parametrize(
    "ref",
    [None, TraceRef(), TraceRef(trace_id="zz", span_id="zz"), TraceRef(trace_id="1" * 32, span_id="1" * 16)],
)
def test_scores_of_unknown_spans_are_counted(rig: Rig, ref: TraceRef | None) -> None:
    assert not rig.holding.attach(scores(ref))
    assert (rig.holding.counts.late, rig.holding.counts.errors) == (1, 0)


def test_ten_thousand_roots_are_held_and_no_more() -> None:
    rig = Rig(max_held=10_000, max_hold=300)
    refs = []
    for _ in range(10_050):
        with rig.tracer.start_as_current_span("retrieve") as root:
            pass
        refs.append(ref_of(root))
    assert rig.holding.counts.holding == 10_000
    assert rig.holding.counts.released == {"full": 50}
    for ref in refs[50:60]:
        assert rig.holding.attach(scores(ref))
    rig.provider.shutdown()
    spans = rig.exported.get_finished_spans()
    assert len(spans) == 10_050
    assert len({span.context.span_id for span in spans if span.context}) == 10_050


@pytest.mark.parametrize("held", [False, True])
def test_a_held_root_is_found_by_its_trace_however_many_came_and_went(held: bool) -> None:
    rig = Rig(max_hold=300, select=lambda span: held or span.name == "rag")
    trace_id = rig.turn().trace_id
    for _ in range(10_000):
        with rig.tracer.start_as_current_span("GET /") as other:
            pass
        assert rig.holding.attach(scores(ref_of(other))) == held
    assert rig.holding.attach(scores(TraceRef(trace_id=trace_id, span_id=f"{1:016x}")))
    assert "rag" in rig.names
    rig.provider.shutdown()


def test_large_roots_are_bounded_by_bytes() -> None:
    rig = Rig(max_bytes=1_000_000)
    for number in range(40):
        texts = {"input.value": "x" * 100_000}
        with rig.tracer.start_as_current_span("retrieve", attributes=texts if number % 2 else {}) as root:
            if not number % 2:
                root.add_event("said", texts)
    counts = rig.holding.counts
    assert counts.holding == 9
    assert counts.bytes <= 1_000_000
    assert len(rig.names) == 31
    rig.provider.shutdown()


def test_wrong_limits_are_named() -> None:
    with pytest.raises(ConfigurationError, match="max_hold must be a number above 0, not 0"):
        HoldingSpanProcessor(InMemorySpanExporter(), max_hold=0)


@pytest.mark.parametrize("rate", [0.0, 0.01])
def test_a_root_whose_turn_is_not_judged_leaves_at_once(rate: float) -> None:
    monitor = Monitor(metrics=[], sinks=[], sample_rate=rate)
    rig = Rig(monitor=monitor, max_hold=60.0)
    refs = [rig.turn() for _ in range(20)]
    for number, ref in enumerate(refs):
        monitor.submit(Record(id=f"r{number}", question="q", answer="a", trace=ref))
    assert monitor.flush(60) == 0
    until(lambda: not rig.holding.counts.holding)
    released = rig.holding.counts.released
    assert released.get("not_judged", 0) + released.get("scored", 0) == 20
    assert released.get("not_judged", 0) >= 15
    rig.provider.shutdown()
    monitor.close(5)


def test_what_became_of_every_root_is_counted_once() -> None:
    rig = Rig(max_held=2)
    with rig.tracer.start_as_current_span("rag") as root:
        assert rig.holding.attach(scores(ref_of(root)))
    refs = [rig.turn() for _ in range(4)]
    assert [rig.holding.attach(scores(ref)) for ref in (refs[3], refs[0])] == [True, False]
    assert rig.holding.force_flush()
    released = {"scored": 2, "full": 2, "flush": 1}
    counts = asdict(rig.holding.counts)
    assert counts == {"holding": 0, "bytes": 0, "released": released, "late": 1, "errors": 0}
    assert rig.names.count("rag") == 5
    rig.provider.shutdown()


def test_a_turn_that_comes_twice_keeps_its_root_until_it_is_judged() -> None:
    judging = threading.Event()

    class Patient(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            await asyncio.to_thread(judging.wait)
            return await super().answer(request)

    monitor = Monitor(metrics=["faithfulness"], judge=Patient(lambda question, request: None), sinks=[])
    rig = Rig(monitor=monitor, max_hold=60.0)
    turn = Record(id="r", question="q", answer="So.", contexts=(Context(text="So."),), trace=rig.turn())
    monitor.submit(turn)
    monitor.submit(turn)
    until(lambda: monitor.stats().skipped == {"duplicate": 1})
    judging.set()
    until(lambda: not rig.holding.counts.holding)
    assert rig.holding.counts.released == {"scored": 1}
    rig.provider.shutdown()
    monitor.close(5)
