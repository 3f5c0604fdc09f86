"""Selection: which turns are picked, with which probability, and that averages stay true."""

from __future__ import annotations

import hashlib
import logging
import random
import uuid
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.helpers import FAITHFUL, TestDraft, check_law, finish, kind_judge, traced, turn
from steelyard.errors import ConfigurationError
from steelyard.online import Decision, Monitor, Rule, Selection, Suspicion, sampling_position
from steelyard.questions import Answer, Question, Request, YesNo
from steelyard.record import Context, TraceRef
from steelyard.scores import Evaluation
from steelyard.testing import MemorySink, ScriptedJudge


def test_the_hash_is_the_documented_one() -> None:
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    digest = hashlib.sha256(trace_id.encode()).hexdigest()
    assert sampling_position(trace_id) == int(digest[:16], 16) / 2**64
    assert round(sampling_position(trace_id), 12) == 0.224774058535


@given(st.text())
def test_every_key_has_a_position(key: str) -> None:
    assert 0 <= sampling_position(key) < 1


def test_positions_are_spread_evenly() -> None:
    positions = [sampling_position(f"{number:032x}") for number in range(4000)]
    for tenth in range(10):
        assert 320 < sum(tenth / 10 <= p < (tenth + 1) / 10 for p in positions) < 480


def test_a_metric_scores_its_share_of_what_is_picked() -> None:
    selection = Selection(rate=0.5, metric_rates={"dear": 0.4, "off": 0.0})
    assert selection.metrics_for(0.1, 0.5, ["dear", "cheap", "off"]) == {"dear": 0.2, "cheap": 0.5}
    assert selection.metrics_for(0.3, 0.5, ["dear", "cheap", "off"]) == {"cheap": 0.5}
    # What no turn has is not the smallest share of any.
    assert selection.floor == 0.2


@pytest.mark.parametrize(
    ("changes", "sign"),
    [
        ({"contexts": ()}, "no_context"),
        ({"answer": "Bananas grow quickly in tropical gardens everywhere."}, "low_overlap"),
        ({"contexts": (Context(text="Marie Curie found polonium.", score=0.1),)}, "low_retrieval_score"),
        ({"contexts": (Context(text="Marie Curie found polonium."),)}, "no_retrieval_score"),
        (
            {"contexts": (Context(text="Marie Curie found polonium.", score=0.1), Context(text="Radium."))},
            "low_retrieval_score",
        ),
        ({"answer": "I'm sorry, polonium found Marie Curie."}, "refusal"),
        ({"answer": "I don't know what Marie Curie found."}, "refusal"),
        ({"answer": "Marie Curie"}, "short_answer"),
        ({"error": "Timeout: reranker"}, "upstream_error"),
    ],
)
def test_signs_of_suspicion(changes: dict[str, Any], sign: str) -> None:
    suspicion = Suspicion(min_retrieval_score=0.5, need_retrieval_score=True)
    assert suspicion.signs(turn()) == ()
    assert suspicion.signs(turn(), disliked=True) == ("disliked",)
    assert suspicion.signs(turn(**changes)) == (sign,)


def test_what_is_no_sign_of_a_bad_turn() -> None:
    suspicion = Suspicion(min_retrieval_score=0.5)
    low = Context(text="Bananas grow.", score=0.1)
    assert suspicion.signs(turn(answer="Curie found polonium.")) == ()
    assert suspicion.signs(turn(contexts=(low, *turn().contexts))) == ()


def test_a_rule_of_the_users_that_fails_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    wrong = [lambda record: 1 / 0, lambda record: 7, lambda record: "sometimes"]
    for choose in wrong:
        selection = Selection(rate=0.4, choose=choose)  # type: ignore[arg-type]
        with caplog.at_level(logging.WARNING, "steelyard"):
            assert selection.decide(turn()) == selection.decide(turn()) == Decision(rate=0.4)
    assert len(caplog.records) == 3
    caplog.clear()
    assert Selection(rate=0.4, choose=lambda record: None).decide(turn()) == Decision(rate=0.4)
    assert not caplog.records


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rule(rate=2), "a rule's rate"),
        (lambda: Rule(tags="vip"), r"write tags=\['vip'\]"),
        (lambda: Rule(force=True, never=True), "both force and never"),
        (lambda: Rule(status="fine"), "status must be one of"),  # type: ignore[arg-type]
        (lambda: Selection(metric_rates={"x": -1}), "metric_rates"),
        (lambda: Selection(rules=["vip"]), "rules hold 'vip'"),  # type: ignore[list-item]
        (lambda: Suspicion(rate="much"), "Suspicion"),  # type: ignore[arg-type]
    ],
)
def test_wrong_rules_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_a_mean_over_a_leaning_sample_stays_true() -> None:
    rng = random.Random(7)
    bad = {f"{number}" for number in range(1500) if rng.random() < 0.2}

    def verdict(question: Question, request: Request) -> Answer:
        assert request.view.contexts is not None
        return YesNo(value=request.view.contexts[0].id not in bad)

    sink = MemorySink()
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=ScriptedJudge(verdict),
        sinks=[sink],
        selection=Selection(rate=0.2, suspicion=Suspicion(rate=1.0)),
        mask=None,
    )
    for number in range(1500):
        name = str(number)
        # Half of the bad turns look suspicious, and so do a few of the good ones.
        suspicious = rng.random() < (0.5 if name in bad else 0.05)
        context = Context(text="Marie Curie found polonium in 1898.", id=name)
        said = "Marie Curie" if suspicious else "Marie Curie found polonium."
        monitor.submit(traced(number, contexts=(context,), answer=said))
        if number % 500 == 0:
            monitor.flush(20)
    assert monitor.flush(60) == 0
    pairs = [(score(e), e["faithfulness"].inclusion_probability) for e in sink.evaluations]
    weights = [1 / probability for _, probability in pairs]
    true = 1 - len(bad) / 1500
    naive = fmean(value for value, _ in pairs)
    hajek = sum(value * weight for (value, _), weight in zip(pairs, weights, strict=True)) / sum(weights)
    assert naive < true - 0.08
    assert abs(hajek - true) < 0.05


def score(evaluation: Evaluation) -> float:
    value = evaluation["faithfulness"].value
    assert value is not None
    return value


def test_a_disliked_turn_gets_a_second_chance() -> None:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], selection=Selection(rate=0.0, suspicion=Suspicion(rate=1.0)))
    monitor.submit(turn("liked"))
    monitor.submit(turn("disliked"))
    monitor.feedback("early", False)
    finish(monitor, [turn("early")])
    assert [evaluation.record_id for evaluation in sink.evaluations] == ["early"]
    for _ in range(2):  # said twice, and taken once
        monitor.feedback("disliked", -1)
    monitor.feedback("liked", True)
    monitor.feedback("unheard of", False)
    monitor.feedback([], "what")  # type: ignore[arg-type]
    assert monitor.flush(60) == 0
    stats = monitor.stats()
    check_law(stats)
    assert (stats.seen, stats.evaluated, stats.skipped) == (3, 2, {"sampled_out": 1})
    record = sink.by_record["disliked"].record
    assert record is not None and record.metadata["feedback"] == -1


def test_a_disliked_turn_that_was_judged_is_judged_again_at_the_right_rate() -> None:
    sink = MemorySink()
    judge = kind_judge()
    selection = Selection(rate=0.5, suspicion=Suspicion(rate=1.0))
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[sink], selection=selection)
    finish(monitor, (traced(number, id=str(number)) for number in range(40)))
    picked = len(sink.evaluations)
    assert 10 < picked < 30
    for number in range(40):
        monitor.feedback(str(number), False)
        check_law(monitor.stats())
    assert monitor.flush(60) == 0
    assert {e["faithfulness"].inclusion_probability for e in sink.evaluations} == {1.0}
    stats = monitor.stats()
    assert (stats.seen, stats.evaluated, len(sink.evaluations)) == (40, 40, 40)
    assert len(judge.requests) == 40 + picked


def test_a_disliked_turn_whose_rate_that_does_not_raise_is_judged_once() -> None:
    judge = kind_judge()
    selection = Selection(rate=0.9, suspicion=Suspicion(rate=0.9))
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[], selection=selection)
    finish(monitor, (traced(number, id=str(number)) for number in range(20)))
    picked = len(judge.requests)
    for number in range(20):
        monitor.feedback(str(number), False)
    assert monitor.flush(60) == 0
    assert len(judge.requests) == picked > 10


def test_with_a_spool_feedback_counts_that_comes_before_the_turn_is_picked(tmp_path: Path) -> None:
    sink = MemorySink()
    selection = Selection(rate=0.0, suspicion=Suspicion(rate=1.0))
    monitor = Monitor(metrics=[], sinks=[sink], selection=selection, spool=tmp_path / "turns.db")
    monitor.feedback("before", False)
    monitor.submit(turn("before"))
    monitor.submit(turn("after"))
    assert monitor.flush(20) == 0
    monitor.feedback("after", False)
    assert monitor.flush(20) == 0
    stats = monitor.stats()
    assert list(sink.by_record) == ["before"]
    assert (stats.spooled, stats.skipped) == (1, {"sampled_out": 1})


def test_what_is_disliked_after_the_end_is_not_taken_up_again() -> None:
    monitor = Monitor(metrics=[], sinks=[], selection=Selection(rate=0.0, suspicion=Suspicion(rate=1.0)))
    finish(monitor, [turn("passed over")])
    assert monitor.close() == 0
    monitor.feedback("passed over", False)
    stats = monitor.stats()
    assert (stats.pending, stats.skipped) == (0, {"sampled_out": 1})


def test_nothing_is_built_that_no_rule_could_pick() -> None:
    draft = TestDraft(turn())
    for selection in (Selection(rate=0.0, suspicion=Suspicion(rate=0.0)), Selection(rate=0.0)):
        monitor = Monitor(metrics=[], sinks=[], selection=selection)
        monitor.submit(draft)
        assert (monitor.flush(60), draft.built) == (0, 0)
    looked_at = Monitor(metrics=[], sinks=[], selection=Selection(rate=0.0, rules=[Rule(tags=["x"])]))
    looked_at.submit(draft)
    assert (looked_at.flush(60), draft.built) == (0, 1)


def test_a_dislike_reaches_back_a_thousand_turns() -> None:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], selection=Selection(rate=0.0, suspicion=Suspicion(rate=1.0)))
    finish(monitor, (turn(str(number)) for number in range(1_001)))
    assert sink.evaluations == []
    monitor.feedback("0", False)
    monitor.feedback("1", False)
    assert monitor.flush(60) == 0
    assert [evaluation.record_id for evaluation in sink.evaluations] == ["1"]


def test_a_dislike_reaches_back_over_sixteen_megabytes() -> None:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], selection=Selection(rate=0.0, suspicion=Suspicion(rate=1.0)))
    finish(monitor, (turn(str(number), metadata={"page": "x" * 2**20}) for number in range(20)))
    assert sink.evaluations == []
    for number in range(20):
        monitor.feedback(str(number), False)
    assert monitor.flush(60) == 0
    reached = sorted(int(evaluation.record_id) for evaluation in sink.evaluations)
    assert reached == list(range(20 - len(reached), 20))
    assert 12 <= len(reached) <= 16


KEY = "a key of the owner's"
RATE = 0.1


def judged(ids: list[str], **options: object) -> int:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], **options)  # type: ignore[arg-type]
    finish(monitor, (turn(name, trace=TraceRef(trace_id=name)) for name in ids))
    monitor.close()
    return len(sink.evaluations)


def test_a_caller_cannot_choose_whether_he_is_judged() -> None:
    random = (uuid.uuid5(uuid.NAMESPACE_OID, str(number)).hex for number in range(20_000))
    hidden = [name for name in random if sampling_position(name) >= RATE][:500]
    assert judged(hidden, sample_rate=RATE) == 0
    # Binomial with n = 500, p = .1: outside of this once in a hundred thousand keys, and the key is fixed.
    assert 20 <= judged(hidden, sample_rate=RATE, sample_key=KEY) <= 82


def test_processes_with_one_key_agree_and_samples_are_nested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_SAMPLE_KEY", "1234567890123456")
    ids = [uuid.uuid5(uuid.NAMESPACE_OID, str(number)).hex for number in range(200)]
    below = [name for name in ids if sampling_position(name, "1234567890123456") < 0.3]
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], sample_rate=0.3)
    finish(monitor, (turn(name, trace=TraceRef(trace_id=name)) for name in ids))
    monitor.close()
    assert sorted(one.record_id for one in sink.evaluations) == sorted(below)


def test_a_key_that_could_be_guessed_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="sample_key must be a text of at least 16") as refused:
        Monitor(metrics=[], sinks=[], sample_key="secret")
    assert "'secret'" not in str(refused.value)
    assert KEY not in repr(Monitor(metrics=[], sinks=[], sample_key=KEY).options)
