"""A Monitor with a spool: what is promised is kept across crashes, and a broken file is no disaster."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from online.helpers import FAITHFUL, SlowJudge, check_law, kind_judge, turn, yes
from online.spooling import check_spool
from steelyard.errors import ConfigurationError, JudgeUnavailable
from steelyard.judge.middleware import CircuitBreaker
from steelyard.online import Budget, Monitor, Spool, SpoolSettings
from steelyard.online.queue._turns import Selected
from steelyard.questions import Answer, Question, Reply, Request
from steelyard.scores import Evaluation
from steelyard.sinks import SQLiteSink, read_evaluations
from steelyard.testing import MemorySink, ScriptedJudge
from waiting import until


def test_turns_go_through_the_spool(tmp_path: Path) -> None:
    sink = MemorySink()
    monitor = Monitor(
        metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], spool=tmp_path / "s.db", sample_rate=0.999
    )
    for number in range(40):
        monitor.submit(turn(f"turn {number}"))
    assert monitor.flush(60) == 0
    spool = check_spool(monitor.stats())
    assert (spool.evaluated, spool.undelivered) == (40, 0)
    assert monitor.stats().spooled == 40
    assert {e["faithfulness"].inclusion_probability for e in sink.evaluations} == {0.999}
    assert len(sink.evaluations) == 40
    monitor.close()


def test_turns_that_are_being_stored_at_the_end_are_not_counted_as_given_up(tmp_path: Path) -> None:
    settings = SpoolSettings(path=tmp_path / "s.db", evaluate=False)
    monitor = Monitor(metrics=[], sinks=[], spool=settings)
    monitor.submit(turn("first"))
    assert monitor.flush(60) == 0
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
    for number in range(20):
        earlier.submit(turn(f"turn {number}"))
    assert earlier.flush(60) == 0
    earlier.close()
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], spool=tmp_path / "s.db")
    monitor.start()
    assert monitor.flush(60) == 0
    assert len(sink.evaluations) == 20
    monitor.close()


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
    monitor.close()


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
    again.submit(turn("turn 3"))
    assert again.flush(60) == 0
    assert again.stats().skipped == {"duplicate": 1}
    again.close()


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
    memory.submit(turn())
    assert memory.flush(60) == 0
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
    assert {e["faithfulness"].value for e in sink.evaluations} == {1.0}
    monitor.close()


_HOST = """
import asyncio, os, signal, sys, time
from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Record
monitor = Monitor(metrics=[], sinks=[], spool=SpoolSettings(path=sys.argv[1], evaluate=False))
number = 0
print("ready", flush=True)
while True:
    monitor.submit(Record(id=str(number), question="q"))
    number += 1
    if number % 50 == 0:
        print(number, monitor.stats().spooled, flush=True)
    time.sleep(0.0005)
"""


@pytest.mark.faults
def test_killing_the_host_loses_one_commit_window_at_most(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    host = subprocess.Popen([sys.executable, "-c", _HOST, path], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    submitted = spooled = 0
    for line in host.stdout:
        if line.strip() != "ready":
            submitted, spooled = map(int, line.split())
        if submitted >= 1000:
            host.send_signal(signal.SIGKILL)
            break
    rest = host.communicate()[0].split("\n")
    for line in filter(None, rest):
        submitted, spooled = map(int, line.split())
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], spool=path)
    monitor.start()
    until(lambda: monitor.stats().spool is not None)
    assert monitor.flush(60) == 0
    ids = sorted(int(evaluation.record_id) for evaluation in sink.evaluations)
    assert ids == list(range(len(ids)))
    assert len(ids) >= spooled
    # Turns of one look into the queue and one transaction: 20 ms and some milliseconds, at 2,000 a second.
    assert len(ids) >= submitted - 256
    monitor.close()


_WORKER = """
import asyncio, sys, time
from steelyard.online import Monitor, SpoolSettings
class Out:
    name = "out"
    async def write(self, evaluations):
        await asyncio.sleep(0.05)
        with open(sys.argv[2], "a") as file:
            for evaluation in evaluations:
                file.write(evaluation.record_id + "\\n")
    async def aclose(self): pass
settings = SpoolSettings(path=sys.argv[1], lease_seconds=1)
monitor = Monitor(metrics=[], sinks=[Out()], concurrency=2, spool=settings)
monitor.start()
time.sleep(30)
"""


@pytest.mark.faults
def test_killing_the_worker_loses_nothing(tmp_path: Path) -> None:
    path, out = tmp_path / "s.db", tmp_path / "out"
    host = Monitor(metrics=[], sinks=[], spool=SpoolSettings(path=path, evaluate=False))
    for number in range(30):
        host.submit(turn(f"turn{number}"))
    assert host.flush(60) == 0
    for wanted in (3, 12, 30):
        worker = subprocess.Popen([sys.executable, "-c", textwrap.dedent(_WORKER), path, out])
        try:
            until(partial(_has_lines, out, wanted))
            if wanted == 30:
                until(lambda: check_spool(host.stats()).undelivered == 0)
        finally:
            worker.kill()
            worker.wait()
    spool = check_spool(host.stats())
    assert (spool.evaluated, spool.pending) == (30, 0)
    assert set(out.read_text().split()) == {f"turn{number}" for number in range(30)}
    host.close()


_ROUNDS = 30


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_storm_of_kills_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    """Each round a host and two workers on one spool are killed, at any point of their work."""
    path, results = tmp_path / "s.db", tmp_path / "results.db"
    committed = 0
    for number in range(_ROUNDS):
        programs = [
            subprocess.Popen([sys.executable, "-c", _STORM, *arguments], stdout=subprocess.PIPE, text=True)
            for arguments in (
                ["host", str(path), str(results), str(number)],
                ["worker", str(path), str(results), ""],
                ["worker", str(path), str(results), ""],
            )
        ]
        host, *workers = programs
        assert host.stdout is not None
        for worker in workers:
            assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
        said = [host.stdout.readline() for _ in range(3 + number % 7)]
        for program in programs[number % 3 :] + programs[: number % 3]:
            program.send_signal(signal.SIGKILL)
        said += host.communicate()[0].split("\n")
        for worker in workers:
            worker.communicate()
        committed += max(int(line) for line in said if line.strip())
    monitor = Monitor(metrics=[], sinks=[SQLiteSink(results)], spool=path)
    monitor.start()
    # What a killed worker held comes back when its lease has ended.
    until(lambda: (spool := monitor.stats().spool) and not spool.pending + spool.undelivered)
    spool = check_spool(monitor.stats())
    monitor.close()
    delivered = [evaluation.record_id for evaluation in read_evaluations(results)]
    assert len(delivered) == len(set(delivered)) == spool.evaluated == spool.accepted
    assert spool.accepted >= committed > _ROUNDS
    assert not spool.dead
    with closing(sqlite3.connect(results)) as file:
        assert file.execute("SELECT COUNT(*) FROM evaluations").fetchone() == (len(delivered),)


_STORM = """
import sys, time
from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Record
from steelyard.sinks import SQLiteSink
kind, path, results, name = sys.argv[1:]
settings = SpoolSettings(path=path, evaluate=kind == "worker", lease_seconds=2)
monitor = Monitor(metrics=[], sinks=[SQLiteSink(results)], spool=settings, concurrency=4)
monitor.start()
number = 0
while kind == "worker":
    print("ready", flush=True)
    time.sleep(60)
while True:
    monitor.submit(Record(id=f"{name}-{number}", question="q"))
    number += 1
    if number % 20 == 0:
        print(monitor.stats().spooled, flush=True)
    time.sleep(0.001)
"""


def _has_lines(path: Path, count: int) -> bool:
    return path.exists() and len(set(path.read_text().split())) >= count


def test_closing_gives_turns_back_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    class Hangs(MemorySink):
        async def write(self, evaluations: object) -> None:
            await __import__("asyncio").sleep(100)

    first = Monitor(metrics=[], sinks=[Hangs()], spool=path)
    first.submit(turn("a"))
    assert first.flush(0.5) == 1
    assert first.close(0.1) == 0
    sink = MemorySink()
    second = Monitor(metrics=[], sinks=[sink], spool=path)
    second.start()
    until(lambda: len(sink.evaluations) == 1)
    second.close()


@pytest.mark.faults
def test_a_forked_child_opens_the_spool_for_itself(tmp_path: Path) -> None:
    script = f"""
    import os, warnings
    warnings.simplefilter("ignore")
    from steelyard.online import Monitor, SpoolSettings
    from steelyard.record import Record
    settings = SpoolSettings(path={str(tmp_path / "s.db")!r}, evaluate=False)
    monitor = Monitor(metrics=[], sinks=[], spool=settings)
    monitor.submit(Record(id="parent", question="q"))
    assert monitor.flush(60) == 0
    for name in "abc":
        if os.fork() == 0:
            monitor.submit(Record(id=name, question="q"))
            left = monitor.flush(5)
            os._exit(left)
    for _ in "abc":
        assert os.wait()[1] == 0
    monitor.submit(Record(id="parent again", question="q"))
    assert monitor.flush(60) == 0
    assert monitor.stats().spool.accepted == 5, monitor.stats()
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert (done.returncode, done.stderr) == (0, "")


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
    monitor.close(0)


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
    monitor.close(0)
