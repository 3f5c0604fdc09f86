from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import Any

import pytest

from sinks.making import TRACE, failed, make_evaluation, make_score
from sinks.otel.telemetry import Telemetry
from steelyard import Monitor, Record, __version__
from steelyard.errors import JudgeRejected
from steelyard.judge.middleware import Cache, CircuitBreaker
from steelyard.metrics import AspectCritique, Faithfulness
from steelyard.online import Budget, Rule, Selection
from steelyard.questions import Answer, Question, Request, YesNo
from steelyard.record import Context
from steelyard.results.counts import ScoreCounts
from steelyard.scores import Score
from steelyard.sinks import observe_alarms, observe_monitor
from steelyard.testing import MemorySink, ScriptedJudge
from steelyard_opentelemetry import EvaluationSpanProcessor
from writing import write


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


def test_the_span_of_a_turn_that_nothing_could_be_said_of_is_an_error(telemetry: Telemetry) -> None:
    ref, _ = telemetry.turn()
    write(telemetry.sink(), make_evaluation("a", failed("m", "refused"), failed("n", "timeout"), trace=ref))
    span = telemetry.evaluation_span()
    assert not span.status.is_ok and span.status.description == "every metric failed: refused"
    assert (span.attributes or {})["error.type"] == "refused"
    telemetry.spans.clear()
    write(telemetry.sink(), make_evaluation("b", failed("m", "refused"), make_score(), trace=ref))
    span = telemetry.evaluation_span()
    assert span.status.is_unset and "error.type" not in (span.attributes or {})


def test_what_a_screen_alone_has_seen_is_no_evaluation(telemetry: Telemetry) -> None:
    ref, _ = telemetry.turn()
    cheap = make_score(id="cheap")
    write(telemetry.sink(), make_evaluation("a", trace=ref).replace(scores=(), screen=(cheap,)))
    assert not telemetry.events()
    assert [one.name for one in telemetry.spans.get_finished_spans()].count("evaluation") == 0
    write(telemetry.sink(), make_evaluation("b", make_score(id="dear"), trace=ref).replace(screen=(cheap,)))
    (event,) = telemetry.events()
    assert event["steelyard.evaluation.id"] == "dear"


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


def test_the_same_results_again_are_not_emitted_twice(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.sinks.opentelemetry._REMEMBERED", 1)  # the oldest are forgotten
    sink = telemetry.sink()
    write(sink, make_evaluation("a"))
    write(sink, make_evaluation("a"), make_evaluation("b"), make_evaluation("b"))
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
    assert monitor.flush(60) == 0
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


def test_every_count_of_a_monitor_its_limits_and_its_alarms_are_measured(telemetry: Telemetry) -> None:
    class Dies(Faithfulness):
        def missing(self, record: Record) -> Any:
            if record.tags:
                raise ValueError
            return super().missing(record)

    class Alarms:
        def __init__(self, *fallen: str) -> None:
            self.fallen = {("all", name): name in fallen for name in ("faithfulness", "relevancy", "rag")}

    def measured(name: str) -> dict[str, float]:
        points = telemetry.points()[f"steelyard.{name}"]
        return {" ".join(filter(None, point.attributes.values())): point.value for point in points}

    limits = (Budget(cost_per_day=2.5, requests_per_hour=900), Budget(cost_per_day=1.0))
    judge = ScriptedJudge(lambda question, request: YesNo(value=True))
    monitors = [
        Monitor(
            metrics=[Dies()],
            judge=judge,
            sinks=[telemetry.sink()],
            budget=budget,
            selection=Selection(rules=[Rule(tags=["never"], never=True)]),
        )
        for budget in limits
    ]
    for monitor in monitors:
        for tags in ((), ("never",), ("dies",)):
            contexts = (Context(text="Because."),)
            monitor.submit(Record(question="Why?", answer="Because.", contexts=contexts, tags=tags))
        assert monitor.flush(60) == 0
    # Whichever of them is read last: one that has not gone off takes back no other.
    alarms = [Alarms("faithfulness"), Alarms("relevancy"), Alarms()]
    for one in alarms:
        observe_alarms(one, meter_provider=telemetry.meters)
    assert measured("turns.decisions") == {"accepted": 4, "skipped never": 2}
    outcomes = measured("turns.outcomes")
    assert (outcomes["evaluated"], outcomes["dead ValueError"]) == (2, 2)
    assert measured("budget.limit") == {"cost_per_day": 2.5, "requests_per_hour": 900}
    assert measured("alarm.fallen") == {"all faithfulness": 1, "all relevancy": 1, "all rag": 0}
    for monitor in monitors:
        monitor.close()


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
    # Of several judges of one name the worst state is told, wherever it stands among them.
    turned = [
        CircuitBreaker(ScriptedJudge(script, name="rejecting"))
        for script in (lambda question, request: YesNo(value=True), turn_away, lambda question, request: None)
    ]
    metrics = [
        AspectCritique(aspect=f"polite {number}", criterion=f"Is it polite? {number}", judge=judge)
        for number, judge in enumerate([kept, *turned])
    ]
    monitor = Monitor(
        metrics=metrics,
        judge=kept,
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
