"""A Monitor with a spool: what is promised is kept across crashes, and a broken file is no disaster."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from online.helpers import FAITHFUL, SlowJudge, check_law, check_spool, finish, kind_judge, turn, yes
from steelyard.errors import ConfigurationError, JudgeUnavailable
from steelyard.judge.middleware import CircuitBreaker
from steelyard.online import Budget, Monitor, Spool, SpoolSettings
from steelyard.online.queue._turns import Selected
from steelyard.questions import Answer, Question, Reply, Request
from steelyard.scores import Evaluation
from steelyard.testing import MemorySink, ScriptedJudge
from waiting import until


def test_turns_go_through_the_spool(tmp_path: Path) -> None:
    sink = MemorySink()
    monitor = Monitor(
        metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], spool=tmp_path / "s.db", sample_rate=0.999
    )
    finish(monitor, (turn(f"turn {number}") for number in range(40)))
    spool = check_spool(monitor.stats())
    assert (spool.evaluated, spool.undelivered) == (40, 0)
    assert monitor.stats().spooled == 40
    assert {e["faithfulness"].inclusion_probability for e in sink.evaluations} == {0.999}
    assert len(sink.evaluations) == 40


def test_turns_that_are_being_stored_at_the_end_are_not_counted_as_given_up(tmp_path: Path) -> None:
    settings = SpoolSettings(path=tmp_path / "s.db", evaluate=False)
    monitor = Monitor(metrics=[], sinks=[], spool=settings)
    finish(monitor, [turn("first")])
    with closing(sqlite3.connect(settings.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")  # whoever stores turns waits for this to end
        for number in range(10):
            monitor.submit(turn(f"turn {number}"))
        while monitor.stats().queued:
            time.sleep(0.01)
        thread = monitor._run._thread
        assert thread is not None
        closing_down = threading.Thread(target=monitor.close, args=(0.01,))
        closing_down.start()
        while not thread.stopped:
            time.sleep(0.01)
        other.execute("ROLLBACK")
        closing_down.join()
    stats = monitor.stats()
    with closing(sqlite3.connect(settings.path)) as db:
        (stored,) = db.execute("SELECT count(*) FROM turns").fetchone()
    assert (stats.spooled, stats.abandoned, stats.pending) == (stored, 11 - stored, 0) == (11, 0, 0)


def test_a_flush_right_after_start_waits_for_what_an_earlier_process_left(tmp_path: Path) -> None:
    settings = SpoolSettings(path=tmp_path / "s.db", evaluate=False)
    earlier = Monitor(metrics=[], sinks=[], spool=settings)
    finish(earlier, (turn(f"turn {number}") for number in range(20)))
    earlier.close()
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], spool=tmp_path / "s.db")
    monitor.start()
    assert monitor.flush(60) == 0
    assert len(sink.evaluations) == 20


@pytest.mark.faults
def test_a_result_that_a_dead_process_left_reaches_the_sinks(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", lease_seconds=0)
    spool.put([Selected(turn("judged"), 0.25, 0.5)])
    [leased] = spool.lease_turns(1)
    assert spool.finish(leased, Evaluation(record_id="judged", scores=()))
    spool.close()
    sink, judge = MemorySink(), kind_judge()
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[sink], spool=tmp_path / "s.db")
    monitor.start()
    assert monitor.flush(60) == 0
    assert [evaluation.record_id for evaluation in sink.evaluations] == ["judged"]
    assert not judge.requests


@pytest.mark.faults
def test_duplicates_and_disorder_are_judged_once(tmp_path: Path) -> None:
    for options in ({}, {"spool": tmp_path / "s.db"}):
        judge, sink = kind_judge(), MemorySink()
        monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[sink], **options)  # type: ignore[arg-type]
        for number in [*range(20), *reversed(range(20)), *range(0, 20, 2), *range(1, 20, 2)]:
            monitor.submit(turn(f"turn {number}"))
        assert monitor.flush(60) == 0
        stats = monitor.stats()
        check_law(stats)
        assert stats.skipped == {"duplicate": 40}
        assert len(sink.evaluations) == len(judge.requests) == 20
        monitor.close()
    again = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[], spool=tmp_path / "s.db")
    finish(again, [turn("turn 3")])
    assert again.stats().skipped == {"duplicate": 1}


class Down(ScriptedJudge):
    """A judge that cannot be reached until it is repaired."""

    broken = True

    def __init__(self) -> None:
        super().__init__(self.reply)

    def reply(self, question: Question, request: Request) -> Answer:
        if self.broken:
            raise JudgeUnavailable("nobody there", cause="unreachable")
        return yes(question, request)


@pytest.mark.faults
def test_while_the_judge_is_down_memory_fails_by_name_and_the_spool_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.online._worker._FIRST_WAIT", 0.3)
    sink = MemorySink()
    memory = Monitor(metrics=FAITHFUL, judge=Down(), sinks=[sink])
    finish(memory, [turn()])
    assert sink.evaluations[0]["faithfulness"].cause == "unreachable"
    check_law(memory.stats())
    memory.close()

    judge, sink = Down(), MemorySink()
    breaker = CircuitBreaker(judge, failures=3, reset_after=0.5)
    monitor = Monitor(metrics=FAITHFUL, judge=breaker, sinks=[sink], spool=tmp_path / "s.db")
    for number in range(10):
        monitor.submit(turn(f"turn {number}"))
    assert monitor.flush(0.8) == 10
    spool = check_spool(monitor.stats())
    assert (spool.pending, spool.evaluated, len(sink.evaluations)) == (10, 0, 0)
    assert 3 <= len(judge.requests) < 10
    judge.broken = False
    assert monitor.flush(60) == 0
    assert check_spool(monitor.stats()).evaluated == 10
    assert {e["faithfulness"].hard_value for e in sink.evaluations} == {1.0}


@pytest.mark.parametrize("hangs", ["sink", "judge"])
def test_closing_gives_turns_back_at_once(tmp_path: Path, hangs: str) -> None:
    """Long before their lease ends."""
    path = SpoolSettings(path=tmp_path / "s.db", lease_seconds=1_000)

    class Hangs(MemorySink):
        async def write(self, evaluations: object) -> None:
            await __import__("asyncio").sleep(100)

    judge = SlowJudge(yes, seconds=100 if hangs == "judge" else 0)
    sinks = [Hangs()] if hangs == "sink" else []
    first = Monitor(metrics=FAITHFUL, judge=judge, sinks=sinks, spool=path)
    first.submit(turn("a"))
    assert first.flush(0.5) == 1
    assert first.close(0.1) == 0
    left = first.stats().spool
    assert left is not None and left.pending + left.undelivered == 1
    sink = MemorySink()
    second = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], spool=path)
    second.start()
    until(lambda: len(sink.evaluations) == 1)


def test_wrong_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        Monitor(metrics=[], sinks=[], spool=tmp_path / "nowhere" / "s.db")
    with pytest.raises(ConfigurationError, match="durability"):
        SpoolSettings(path=tmp_path / "s.db", durability="none")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="budget"):
        Monitor(
            metrics=[],
            sinks=[],
            budget=Budget(requests_per_day=5),
            spool=SpoolSettings(path=tmp_path / "s.db", evaluate=False),
        )


@pytest.mark.faults
def test_a_judge_slower_than_the_lease_is_not_asked_twice(tmp_path: Path) -> None:
    judges = [SlowJudge(yes, seconds=3), SlowJudge(yes, seconds=0)]
    path = tmp_path / "s.db"
    first, second = (
        Monitor(metrics=FAITHFUL, judge=judge, sinks=[], spool=SpoolSettings(path=path, lease_seconds=1))
        for judge in judges
    )
    first.submit(turn())
    until(lambda: judges[0].running)
    second.start()
    assert first.flush(60) == 0
    assert (len(judges[0].requests), len(judges[1].requests)) == (1, 0)
    second.close(0)
    first.close(0)


@pytest.mark.faults
def test_a_turn_is_not_postponed_without_end(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Spool(path).put([Selected(turn("old"), 0.0, 1.0)])
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE turns SET postponed = 30")
        file.commit()

    class Down(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            raise JudgeUnavailable("down", cause="unreachable")

    sink = MemorySink()
    monitor = Monitor(metrics=FAITHFUL, judge=Down(yes), sinks=[sink], spool=path)
    monitor.start()
    until(lambda: sink.evaluations)
    [evaluation] = sink.evaluations
    assert evaluation["faithfulness"].cause == "unreachable"
    assert monitor.flush(60) == 0


def _bodies(path: Path) -> list[tuple[str]]:
    """The results that wait in a spool, which need not be there yet."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as file, contextlib.suppress(sqlite3.OperationalError):
        return file.execute("SELECT body FROM results").fetchall()
    return []


def test_content_that_is_not_to_be_stored_is_in_no_result_in_the_spool(tmp_path: Path) -> None:
    class Stuck(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            await asyncio.sleep(60)

    path = tmp_path / "s.db"
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[Stuck()], spool=path, store_content=False)
    monitor.submit(turn())
    until(lambda: _bodies(path))
    [(body,)] = _bodies(path)
    assert "faithfulness" in body and "polonium" not in body
