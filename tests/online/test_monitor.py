"""The Monitor from outside: what goes in, what comes out, and that nothing is lost on the way."""

from __future__ import annotations

import itertools
import json
import logging
import os
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import get_current

from judge_server import JudgeServer
from online.helpers import FAITHFUL, SlowJudge, TestDraft, check_law, finish, kind_judge, traced, turn, yes
from steelyard.errors import ConfigurationError
from steelyard.metrics import AnswerRelevancy, Faithfulness, Hallucination
from steelyard.online import Canaries, Monitor, Selection, SpoolSettings
from steelyard.questions import YesNo
from steelyard.record import Context, Record, TraceRef
from steelyard.recording import unrecorded
from steelyard.scores import Evaluation, Evidence
from steelyard.testing import MemorySink, ScriptedJudge
from waiting import until


def test_a_turn_is_judged_and_delivered() -> None:
    sink = MemorySink()
    heard: list[Evaluation] = []
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[sink])
    monitor.on_evaluation(heard.append)
    finish(monitor, [turn("one")])
    [evaluation] = sink.evaluations
    assert heard == [evaluation]
    assert evaluation.record_id == "one"
    assert (evaluation["faithfulness"].value, evaluation["faithfulness"].hard_value) == (0.9, 1.0)
    assert evaluation["faithfulness"].inclusion_probability == 1.0
    stats = monitor.stats()
    assert (stats.seen, stats.evaluated, stats.sinks["memory"].written) == (1, 1, 1)
    assert stats.usage.requests == 1


def test_a_turn_that_comes_by_a_recorder_and_by_its_spans_is_told(caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor(metrics=[], sinks=[])
    finish(monitor, (turn(trace=TraceRef(framework=framework)) for framework in ("langchain", "llamaindex")))
    assert not caplog.text
    finish(monitor, [turn(trace=TraceRef(framework="opentelemetry"))])
    assert "use EvaluationSpanProcessor or the recorder, not both" in caplog.text


def test_nothing_is_scored_and_everything_accounted_without_metrics() -> None:
    monitor = Monitor(metrics=[], sinks=[])
    finish(monitor, (turn() for _ in range(50)))
    assert monitor.stats().evaluated == 50


def test_drafts_are_built_in_the_background_and_only_when_picked() -> None:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink])
    main = threading.current_thread()
    builders: list[threading.Thread] = []

    class Watched(TestDraft):
        def build(self) -> Record | None:
            builders.append(threading.current_thread())
            return super().build()

    monitor.submit(Watched(turn("built")))
    monitor.submit(TestDraft(None))
    monitor.submit(TestDraft(RuntimeError("a recorder's mistake")))
    assert monitor.flush(60) == 0
    assert [evaluation.record_id for evaluation in sink.evaluations] == ["built"]
    assert builders and main not in builders
    stats = monitor.stats()
    check_law(stats)
    assert (stats.skipped, stats.dead) == ({"not_rag": 1}, {"RuntimeError": 1})
    monitor.close()
    unpicked = TestDraft(turn())
    silent = Monitor(metrics=[], sinks=[], sample_rate=0.0)
    silent.submit(unpicked)
    assert (silent.flush(60), unpicked.built, silent.stats().skipped) == (0, 0, {"sampled_out": 1})


def test_turns_that_cannot_be_judged_are_skipped_by_name() -> None:
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[])
    monitor.submit(turn(status="error"))
    monitor.submit(turn(status="cancelled"))
    monitor.submit(turn(status="interrupted"))
    monitor.submit(turn(contexts=()))
    monitor.submit(turn(contexts=(Context(text=" "),)))
    monitor.submit("nonsense")  # type: ignore[arg-type]
    assert monitor.flush(60) == 0
    stats = monitor.stats()
    assert stats.skipped == {
        "status_error": 1,
        "status_cancelled": 1,
        "status_interrupted": 1,
        "missing_input": 2,
        "unreadable": 1,
    }


def test_sampling_is_the_same_everywhere_and_nested() -> None:
    def picked(rate: float) -> set[str]:
        sink = MemorySink()
        monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], sample_rate=rate)
        finish(monitor, (traced(number, id=str(number)) for number in range(400)))
        check_law(monitor.stats())
        assert {e["faithfulness"].inclusion_probability for e in sink.evaluations} == {rate}
        monitor.close()
        return {evaluation.record_id for evaluation in sink.evaluations}

    tenth, third = picked(0.1), picked(0.3)
    assert picked(0.1) == tenth < third
    assert 20 <= len(tenth) <= 65


def test_each_metric_can_have_a_rate_of_its_own() -> None:
    sink = MemorySink()
    monitor = Monitor(
        metrics=[*FAITHFUL, Faithfulness(name="dear", claims="sentences")],
        judge=kind_judge(),
        sinks=[sink],
        selection=Selection(rate=0.5, metric_rates={"dear": 0.2}),
    )
    finish(monitor, (traced(number) for number in range(200)))
    dear = [e["dear"] for e in sink.evaluations if len(e.scores) == 2]
    assert 0 < len(dear) < len(sink.evaluations)
    assert {score.inclusion_probability for score in dear} == {0.1}


def test_the_queue_drops_the_newest_and_counts_them() -> None:
    judge = SlowJudge(yes, seconds=0.2)
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[], max_queue=5, concurrency=1)
    for _ in range(50):
        monitor.submit(turn())
        check_law(monitor.stats())
    stats = monitor.stats()
    assert stats.skipped["queue_full"] + stats.accepted == 50
    assert stats.accepted <= 5 + 2
    assert monitor.flush(60) == 0


def test_bytes_bound_the_queue_too() -> None:
    monitor = Monitor(
        metrics=FAITHFUL, judge=SlowJudge(yes, seconds=0.3), sinks=[], max_queue_bytes=100_000, concurrency=1
    )
    for _ in range(10):
        monitor.submit(turn(answer="x" * 30_000))
    assert monitor.stats().queued_bytes <= 100_000
    assert monitor.stats().skipped["queue_full"] >= 5


def test_no_more_turns_at_once_than_allowed() -> None:
    judge = SlowJudge(yes, seconds=0.02)
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[], concurrency=4)
    finish(monitor, (turn() for _ in range(30)))
    assert judge.peak == 4


def test_flush_says_what_is_left_and_close_gives_it_up(caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor(metrics=FAITHFUL, judge=SlowJudge(yes, seconds=150), sinks=[], concurrency=2)
    for _ in range(5):
        monitor.submit(turn())
    assert monitor.flush(0.1) == 5
    started = time.monotonic()
    assert monitor.close(0.1) == 5
    assert time.monotonic() - started < 60
    monitor.submit(turn())
    stats = monitor.stats()
    assert (stats.abandoned, stats.pending, stats.skipped) == (5, 0, {"closed": 1})
    assert "given up because time ran out at the end: 5; raise exit_timeout" in caplog.text


def test_a_monitor_that_is_closed_starts_no_thread_again() -> None:
    monitor = Monitor(metrics=[], sinks=[])
    monitor.close()
    before = set(threading.enumerate())
    monitor.start()
    assert set(threading.enumerate()) <= before


def test_a_turn_is_judged_if_one_metric_has_what_it_needs() -> None:
    sink = MemorySink()
    metrics = [*FAITHFUL, AnswerRelevancy()]
    monitor = Monitor(metrics=metrics, judge=kind_judge(), sinks=[sink])
    finish(monitor, [turn(contexts=())])
    [evaluation] = sink.evaluations
    assert evaluation["faithfulness"].cause == "missing_contexts"
    assert evaluation["answer_relevancy"].cause != "missing_contexts"


def test_content_need_not_be_stored() -> None:
    sink = MemorySink()
    heard: list[Evaluation] = []
    pointed = (Evidence(context=0, start=0, end=11, text="Marie Curie"),)
    # A verdict whose claim is told in the explanation too, and a reason in the judge's words.
    quoted = YesNo(value=False, reason="Marie Curie did not.", evidence=pointed)
    judge = ScriptedJudge(lambda *_: quoted)
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[sink], store_content=False)
    monitor.on_evaluation(heard.append)
    finish(monitor, [turn()])
    [evaluation] = sink.evaluations
    assert evaluation.record is None
    told = str([asdict(each) for each in (evaluation, *heard)])
    assert "Curie" not in told and "polonium" not in told
    assert evaluation["faithfulness"].verdicts[0].value is False


def test_what_steelyard_does_itself_is_not_taken() -> None:
    assert trace.get_current_span() is trace.INVALID_SPAN
    monitor = Monitor(metrics=[], sinks=[])
    before = get_current()
    with unrecorded():
        assert get_current() != before
        monitor.submit(turn())
    assert get_current() == before
    assert monitor.stats().seen == 0


def test_judging_runs_under_the_loop_guard() -> None:
    seen: list[int] = []
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[])

    def resubmit(evaluation: Evaluation) -> None:
        monitor.submit(turn())
        seen.append(monitor.stats().seen)

    monitor.on_evaluation(resubmit)
    finish(monitor, [turn()])
    assert seen == [1]


def test_callbacks_can_be_slow_raise_and_be_taken_back(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    monitor = Monitor(metrics=[], sinks=[])

    def bad(evaluation: Evaluation) -> None:
        raise RuntimeError("mine")

    monitor.on_evaluation(bad)
    stop = monitor.on_evaluation(lambda evaluation: heard.append(evaluation.record_id))
    with caplog.at_level(logging.WARNING, "steelyard"):
        finish(monitor, (turn(name) for name in "abc"))
    assert sorted(heard) == ["a", "b", "c"]
    assert len(caplog.records) == 1
    stop()
    finish(monitor, [turn("d")])
    assert "d" not in heard


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_rate": 1.5}, "sample_rate must be a number from 0 to 1, not 1.5"),
        ({"sample_rate": True}, "sample_rate"),
        ({"concurrency": 0}, "concurrency must be"),
        ({"max_queue": 2.5}, "max_queue must be"),
        ({"deadline": -1}, "deadline must be a number of seconds"),
        ({"fuse": "all"}, "fuse must be one of"),
        ({"mask": "x"}, "mask must be a function"),
        ({"sinks": ["steelyard.db"]}, "there is no sink"),
        ({"sinks": [3]}, "3 among the sinks is not a Sink; give a name such as"),
        ({"sinks": "sqlite"}, r"write sinks=\['sqlite'\]"),
        ({"metrics": ["faithfulnes"]}, "did you mean 'faithfulness'"),
        ({"metrics": [3]}, "metrics must be names or objects"),
        ({"metrics": "faithfulness"}, r"write metrics=\['faithfulness'\]"),
        ({"embedder": "openai:small"}, "is not an Embedder; write OpenAIEmbedder"),
        ({"metrics": [*FAITHFUL, *FAITHFUL]}, "two metrics are named"),
        ({"selection": Selection(metric_rates={"other": 0.5})}, "metric_rates names 'other'"),
        ({"selection": 0.5}, r"selection=0.5 is not a Selection; write Selection\(...\)"),
        ({"budget": 5}, r"budget=5 is not a Budget; write Budget\(...\)"),
    ],
)
def test_wrong_options_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Monitor(**{"metrics": FAITHFUL, "judge": kind_judge(), "sinks": [], **options})


def test_metrics_and_sinks_may_be_names(tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    monitor = Monitor(metrics=["faithfulness", Hallucination()], sinks=[f"jsonl:{file}"])
    finish(monitor, [turn("a")])
    monitor.close()
    [line] = file.read_text().splitlines()
    assert [score["metric"] for score in json.loads(line)["scores"]] == ["faithfulness", "hallucination"]


def test_a_callback_that_wants_to_exit_does_not_end_the_callbacks() -> None:
    monitor = Monitor(metrics=[], sinks=[])
    seen: list[str] = []

    def leave(evaluation: Evaluation) -> None:
        seen.append(evaluation.record_id)
        raise SystemExit

    monitor.on_evaluation(leave)
    finish(monitor, (turn(name) for name in ("a", "b")))
    assert seen == ["a", "b"]


def test_who_listens_hears_of_every_turn_that_is_not_judged(tmp_path: Path) -> None:
    heard: dict[str, str] = {}

    def listen(trace: TraceRef | None, reason: str) -> None:
        assert trace is not None and trace.trace_id is not None and trace.trace_id not in heard
        heard[trace.trace_id] = reason

    class Dies(Faithfulness):
        def missing(self, record: Record) -> Any:
            raise ValueError

    number = itertools.count()

    def submit(monitor: Monitor, **changes: Any) -> str:
        record = traced(next(number), **changes)
        monitor.submit(record)
        assert record.trace is not None and record.trace.trace_id is not None
        return record.trace.trace_id

    full = Monitor(metrics=[], sinks=[], max_queue=1, judge=kind_judge())
    full._run._half_started = True  # so that nothing is taken out
    no_more = full.on_decision(listen)
    submit(full)
    kept_out = submit(full)
    assert heard == {kept_out: "queue_full"}
    no_more()
    submit(full)
    assert heard == {kept_out: "queue_full"}
    full.close(0)

    dying = Monitor(metrics=[Dies()], sinks=[], judge=kind_judge())
    dying.on_decision(listen)
    dead = submit(dying)
    assert dying.flush(60) == 0
    assert heard.pop(dead) == "ValueError"
    dying.close(0)

    settings = SpoolSettings(path=tmp_path / "s.db", evaluate=False, max_bytes=2000)
    storing = Monitor(metrics=[], sinks=[], spool=settings)
    storing.on_decision(listen)
    stored, large = submit(storing), submit(storing, answer="x" * 4000)
    twice = submit(storing, id="twice"), submit(storing, id="twice")
    assert storing.flush(60) == 0
    assert {name: heard[name] for name in (stored, large, twice[1])} == {
        stored: "spooled",
        large: "spool_full",
        twice[1]: "duplicate",
    }


def test_a_callback_may_flush_its_own_monitor() -> None:
    monitor, flushed = Monitor(metrics=[], sinks=[]), threading.Event()

    def waits(_: object) -> None:
        monitor.flush(3600)
        flushed.set()

    monitor.on_evaluation(waits)
    monitor.submit(turn())
    assert flushed.wait(120)
    monitor.close()


def test_an_interrupt_in_a_decision_is_the_main_threads_and_nobody_elses() -> None:
    def strikes(trace: object, reason: str) -> None:
        raise KeyboardInterrupt

    monitor = Monitor(metrics=[], sinks=[], sample_rate=0.0)
    monitor.on_decision(strikes)
    with pytest.raises(KeyboardInterrupt):
        monitor.submit(turn())
    other = threading.Thread(target=monitor.submit, args=(turn(),))
    other.start()
    other.join(120)
    assert monitor.stats().skipped == {"sampled_out": 2}


def test_a_named_judge_asks_as_many_at_a_time_as_turns_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    with JudgeServer(latency=1.0) as server:
        monkeypatch.setenv("STEELYARD_BASE_URL", server.url)
        monkeypatch.setenv("STEELYARD_JUDGE", "openai:stub")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monitor = Monitor(metrics=FAITHFUL, sinks=[MemorySink()], concurrency=40)
        finish(monitor, (turn(str(number)) for number in range(40)))
        assert server.peak == 40
        monitor.close()


AWAY = "nats://127.0.0.1:9"  # nobody listens there


@pytest.mark.parametrize("address", ["file", AWAY, "amqp://127.0.0.1:9"])
def test_a_process_that_may_not_judge_never_does(tmp_path: Path, address: str) -> None:
    judge, sink = kind_judge(), MemorySink()
    settings = SpoolSettings(path=tmp_path / "s.db" if address == "file" else address, evaluate=False)
    monitor = Monitor(
        metrics=FAITHFUL, judge=judge, sinks=[sink], spool=settings, canaries=Canaries(share=1.0)
    )
    monitor.start()
    for number in range(20):
        monitor.submit(turn(str(number)))
    assert monitor.flush(60 if address == "file" else 1) == (0 if address == "file" else 20)
    assert (judge.requests, sink.evaluations, monitor.stats().evaluated) == ([], [], 0)
    monitor.close(0.1)
    stats = monitor.stats()
    assert stats.spooled + stats.abandoned == 20


def test_turns_wait_within_bounds_and_are_then_skipped_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "comes later"
    folder.mkdir()
    settings = SpoolSettings(path=folder / "s.db", evaluate=False)
    monitor = Monitor(metrics=[], sinks=[], spool=settings, max_queue=10)
    folder.rmdir()
    monitor.start()
    monitor.submit(turn("first"))
    monitor.flush(0.5)
    for number in range(30):
        monitor.submit(turn(str(number)))
    stats = monitor.stats()
    check_law(stats)
    assert stats.skipped == {"queue_unavailable": 21} and stats.pending == 10
    os.mkdir(folder)
    until(lambda: monitor.stats().spooled == 10)
