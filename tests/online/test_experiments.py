"""Bad turns that a Monitor answers again in the background, to see what they suffer from."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from online.helpers import FAITHFUL, check_law, finish, turn
from steelyard.cli._app import build
from steelyard.diagnosis import Experiments
from steelyard.errors import ConfigurationError
from steelyard.online import Budget, Monitor, SpoolSettings
from steelyard.questions import Answer, Question, Request, YesNo
from steelyard.record import Context
from steelyard.report import open_results
from steelyard.sinks import SQLiteSink
from steelyard.testing import MemorySink, ScriptedJudge
from waiting import until

BAD = "She found radium."


def judged(question: Question, request: Request) -> Answer:
    return YesNo(value="radium" not in str(asdict(request)))


def test_bad_turns_are_tried_once_and_never_recorded(tmp_path: Path) -> None:
    """On the bill, in the ledger, in the results file, and shown by `steelyard explain`."""
    asked: list[int] = []
    path = str(tmp_path / "results.db")

    def replay(question: str, contexts: Sequence[Context]) -> str:
        asked.append(len(contexts))
        # What the application records by itself must not come back as traffic.
        monitor.submit(turn(question=question, answer=BAD))
        return BAD if contexts else "She found polonium."

    monitor = Monitor(
        metrics=FAITHFUL,
        judge=ScriptedJudge(judged),
        sinks=[SQLiteSink(path)],
        experiments=Experiments(replay=replay, per_turn=3, per_day=4),
    )
    monitor.submit(turn("fine"))
    finish(monitor, (turn(name, answer=BAD) for name in ("bad", "next", "after")))
    stats = monitor.stats()
    assert (stats.seen, stats.evaluated, stats.replays) == (4, 4, 4)
    check_law(stats)
    with closing(open_results(path)) as reader:
        found = {name: reader.evaluation(name) for name in ("fine", "bad", "next", "after")}
    said = {name: one.diagnosis for name, one in found.items() if one is not None and one.diagnosis}
    assert said["fine"].trials == ()
    tried = [name for name, one in said.items() if one.trials]
    assert len(asked) == 4 == sum(len(said[name].trials) for name in tried)
    assert [one.good for one in said[tried[0]].trials][:1] == [False]
    assert "the calls of this day are used up" in said["after"].because
    assert stats.usage.requests >= 4 + len(asked)
    monitor.close()
    shown = CliRunner().invoke(build(), ["explain", tried[0], "--db", path])
    assert shown.exit_code == 0
    assert "as it was" in shown.output


def test_the_calls_of_a_day_are_those_of_all_processes_that_share_a_store(tmp_path: Path) -> None:
    path, asked = str(tmp_path / "results.db"), list[str]()

    def replay(question: str, contexts: Sequence[Context]) -> str:
        asked.append(question)
        return BAD

    for name in ("first", "second"):  # as if each were a process: they share the file and nothing else
        monitor = Monitor(
            metrics=FAITHFUL,
            judge=ScriptedJudge(judged),
            sinks=[SQLiteSink(path)],
            experiments=Experiments(replay=replay, per_turn=3, per_day=4),
        )
        finish(monitor, [turn(f"{name}, one", answer=BAD), turn(f"{name}, two", answer=BAD)])
        monitor.close()
    assert len(asked) == 4
    with closing(open_results(path)) as reader:
        found = reader.evaluation("second, two")
    assert found is not None and found.diagnosis is not None
    assert found.diagnosis.because.endswith("no experiment: the calls of this day are used up")


def test_what_experiments_ask_the_judge_is_on_the_budgets_bill(tmp_path: Path) -> None:
    path, judge = tmp_path / "spool.db", ScriptedJudge(judged)
    host = Monitor(metrics=[], sinks=[], spool=SpoolSettings(path=path, evaluate=False))
    finish(host, (turn(f"{number}", answer=BAD) for number in range(10)))
    host.close()
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=judge,
        sinks=[],
        spool=path,
        concurrency=1,
        budget=Budget(requests_per_day=10),
        experiments=Experiments(replay=lambda _question, _contexts: BAD, per_turn=3),
    )
    monitor.start()
    until(lambda: len(judge.requests) >= 10)
    monitor.flush(1)
    stats = monitor.stats()
    monitor.close(0)
    # A turn that there is room for may still be tried as often as it may.
    assert len(judge.requests) <= 10 + 3
    assert stats.usage.requests == len(judge.requests) > stats.replays > 0


def test_a_store_that_cannot_count_costs_the_experiment_and_nothing_else() -> None:
    class Away(MemorySink):
        def count_replay(self, day: str, *, most: int) -> bool:
            raise OSError("with a secret")

    sink = Away()
    options = Experiments(replay=lambda _question, _contexts: BAD)
    monitor = Monitor(metrics=FAITHFUL, judge=ScriptedJudge(judged), sinks=[sink], experiments=options)
    finish(monitor, [turn("bad", answer=BAD)])
    monitor.close()
    (found,) = sink.evaluations
    assert found.scores[0].value == 0.0
    assert found.diagnosis is not None
    assert found.diagnosis.because.endswith("nobody could count the calls of this day: OSError")


def test_a_monitor_that_is_closed_waits_for_no_further_experiment() -> None:
    began, go, sink = threading.Event(), threading.Event(), MemorySink()

    def replay(question: str, contexts: Sequence[Context]) -> str:
        began.set()
        go.wait(60)
        return BAD

    monitor = Monitor(
        metrics=FAITHFUL, judge=ScriptedJudge(judged), sinks=[sink], experiments=Experiments(replay=replay)
    )
    monitor.submit(turn("bad", answer=BAD))
    assert began.wait(60)
    closing_ = threading.Thread(target=monitor.close, args=(60,))
    closing_.start()
    while not monitor._run.inbox.closed:
        threading.Event().wait(0.01)
    go.set()
    closing_.join(120)
    (found,) = sink.evaluations
    assert found.diagnosis is not None
    assert monitor.stats().replays == 1
    assert found.diagnosis.because.endswith("no experiment: the Monitor is being closed")


def test_experiments_are_refused_where_nothing_is_judged(tmp_path: Path) -> None:
    options = Experiments(replay=lambda _question, _contexts: "")
    spool = SpoolSettings(path=str(tmp_path / "spool.db"), evaluate=False)
    with pytest.raises(ConfigurationError, match="steelyard worker --replay"):
        Monitor(metrics=FAITHFUL, judge=ScriptedJudge(judged), sinks=[], spool=spool, experiments=options)
    with pytest.raises(ConfigurationError, match=r"write Experiments\(replay=\.\.\.\)"):
        Monitor(metrics=FAITHFUL, judge=ScriptedJudge(judged), sinks=[], experiments=judged)  # type: ignore[arg-type]
