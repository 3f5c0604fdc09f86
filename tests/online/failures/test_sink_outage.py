"""With a stored queue, a result that a sink does not take waits until it does; nobody else waits for it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from online.helpers import FAITHFUL, check_spool, finish, kind_judge, turn
from steelyard.errors import SinkError
from steelyard.online import Monitor, SpoolSettings
from steelyard.scores import Evaluation
from steelyard.testing import MemorySink
from waiting import until

pytestmark = pytest.mark.faults


class Away(MemorySink):
    """Takes nothing until it is told to."""

    away = True

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        if self.away:
            raise SinkError("it cannot be reached", cause="unreachable")
        await super().write(evaluations)


class Refusing(MemorySink):
    """Raises over every batch in which one of its odd ones is."""

    error: Exception = ValueError("odd")

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        if any(evaluation.record_id.endswith("7") for evaluation in evaluations):
            raise self.error
        await super().write(evaluations)


@pytest.fixture(autouse=True)
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.online._sink_writer._PAUSE", 0.01)
    monkeypatch.setattr("steelyard.online._sink_writer._FIRST_REST", 0.05)
    monkeypatch.setattr("steelyard.online._sink_writer._LONGEST_REST", 0.2)


def test_results_wait_in_the_spool_while_a_sink_is_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away, good, judge = Away(name="away"), MemorySink(), kind_judge()
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[away, good], spool=tmp_path / "s.db")
    with caplog.at_level(logging.WARNING, "steelyard"):
        for number in range(100):
            monitor.submit(turn(str(number)))
        until(lambda: monitor.stats().sinks["memory"].written == 100)
        until(lambda: check_spool(monitor.stats()).waiting == {"away": 100})
        assert monitor.flush(0.3) == 100
        away.away = False
        assert monitor.flush(60) == 0
    stats = monitor.stats()
    assert check_spool(stats).waiting == {}
    counts = stats.sinks["away"]
    assert (counts.written, counts.lost, stats.sinks["memory"].written) == (100, 0, 100)
    assert Counter(e.record_id for e in away.evaluations).most_common(1)[0][1] == 1
    # Brought again, a result costs nothing more.
    assert len(judge.requests) == stats.usage.requests == 100
    [first, last] = caplog.messages
    assert "does not take results" in first and "they wait until it does" in first
    assert "takes results again" in last


def test_what_waits_for_a_sink_is_brought_by_whoever_comes_next(tmp_path: Path) -> None:
    first, judge = Away(name="results"), kind_judge()
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[first], spool=tmp_path / "s.db")
    for number in range(20):
        monitor.submit(turn(str(number)))
    assert monitor.flush(1) == 20
    until(lambda: check_spool(monitor.stats()).evaluated == 20)
    monitor.close(0)
    again = MemorySink(name="results")
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[again], spool=tmp_path / "s.db")
    monitor.start()
    assert monitor.flush(60) == 0
    assert sorted(again.by_record) == sorted(str(number) for number in range(20))
    assert len(judge.requests) == 20


def test_a_sink_slower_than_the_lease_gets_what_waited_for_it_once(tmp_path: Path) -> None:
    class Slow(Away):
        writing = False

        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            if not self.away:
                self.writing = True
                await asyncio.sleep(3)
            await super().write(evaluations)

    slow, other = Slow(name="results"), MemorySink(name="results")
    first, second = (
        Monitor(metrics=[], sinks=[sink], spool=SpoolSettings(path=tmp_path / "s.db", lease_seconds=1))
        for sink in (slow, other)
    )
    first.submit(turn())
    until(lambda: first.stats().spool is not None)
    until(lambda: check_spool(first.stats()).waiting == {"results": 1})
    slow.away = False
    until(lambda: slow.writing)
    second.start()
    assert first.flush(60) == 0
    assert (len(slow.evaluations), len(other.evaluations)) == (1, 0)
    second.close(0)
    first.close(0)


def test_of_two_workers_with_other_sinks_each_writes_what_it_judged(tmp_path: Path) -> None:
    away, good, again = Away(name="one"), MemorySink(name="other"), MemorySink(name="one")
    judges = kind_judge(), kind_judge()
    first, second = (
        Monitor(metrics=FAITHFUL, judge=judge, sinks=[sink], spool=tmp_path / "s.db")
        for judge, sink in zip(judges, (away, good), strict=True)
    )
    second.start()
    for number in range(60):
        first.submit(turn(str(number)))
    until(lambda: second.stats().spool is not None and check_spool(second.stats()).evaluated == 60)
    kept = len(judges[0].requests)
    until(lambda: check_spool(second.stats()).waiting.get("one", 0) == kept)
    first.close(0)
    # It has no sink of this name, and writes what it has judged itself.
    until(lambda: len(good.by_record) == len(judges[1].requests) == 60 - kept)
    second.close(0)
    third = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[again], spool=tmp_path / "s.db")
    third.start()
    assert third.flush(60) == 0
    assert sorted([*again.by_record, *good.by_record]) == sorted(str(number) for number in range(60))


def test_what_a_sink_was_about_to_write_at_the_end_waits_for_the_next_process(tmp_path: Path) -> None:
    class Writing(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            began.set()
            await asyncio.sleep(300)

    began = threading.Event()
    good = MemorySink(name="good")
    settings = SpoolSettings(path=tmp_path / "s.db")
    monitor = Monitor(metrics=[], sinks=[Writing(name="results"), good], spool=settings)
    monitor.submit(turn("a"))
    assert began.wait(60)
    # Behind the write that is under way.
    monitor.submit(turn("b"))
    until(lambda: monitor.stats().sinks["good"].written == 2)
    monitor.close(0)
    assert check_spool(monitor.stats()).waiting == {"results": 2}
    counts = monitor.stats().sinks["results"]
    assert (counts.written, counts.waiting, counts.kept, counts.lost) == (0, 0, 2, 0)
    sinks = [MemorySink(name="results"), MemorySink(name="good")]
    monitor = Monitor(metrics=[], sinks=[*sinks], spool=settings)
    monitor.start()
    assert monitor.flush(60) == 0
    assert [sorted(sink.by_record) for sink in sinks] == [["a", "b"], []]


def test_a_sink_that_fails_is_tried_with_few_results_and_gets_many_once_it_works(tmp_path: Path) -> None:
    sizes: list[int] = []

    class Sized(Away):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            sizes.append(len(evaluations))
            await super().write(evaluations)

    sink, heard = Sized(name="away"), Counter[str]()
    monitor = Monitor(metrics=[], sinks=[sink], spool=tmp_path / "s.db")
    monitor.on_evaluation(lambda evaluation: heard.update([evaluation.record_id]))
    for number in range(600):
        monitor.submit(turn(str(number)))
    until(lambda: (spool := monitor.stats().spool) is not None and spool.waiting == {"away": 600})
    known = len(sizes)
    until(lambda: len(sizes) > known + 3)
    assert max(sizes[known + 1 :]) <= 16
    sink.away = False
    assert monitor.flush(60) == 0
    assert max(sizes) > 16
    assert len(sink.by_record) == len(heard) == 600 and heard.most_common(1)[0][1] == 1


@pytest.mark.parametrize("error", [ValueError("odd"), SinkError("odd", cause="rejected")], ids=repr)
def test_a_result_that_fails_alone_is_refused_by_name_and_holds_up_no_other(
    tmp_path: Path, error: Exception
) -> None:
    sink = Refusing(name="picky")
    sink.error = error
    monitor = Monitor(metrics=[], sinks=[sink], spool=tmp_path / "s.db")
    finish(monitor, (turn(str(number)) for number in range(100)))
    counts = monitor.stats().sinks["picky"]
    cause = "rejected" if isinstance(error, SinkError) else "ValueError"
    assert (counts.written, counts.refused, counts.lost) == (90, {cause: 10}, 0)
    assert len(sink.by_record) == 90


def test_judging_waits_once_results_fill_the_spool_and_then_turns_are_skipped(tmp_path: Path) -> None:
    away = Away(name="away")
    settings = SpoolSettings(path=tmp_path / "s.db", max_bytes=40_000)
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[away], spool=settings, concurrency=1)
    for number in range(200):
        monitor.submit(turn(str(number)))
    until(lambda: monitor.stats().skipped.get("spool_full", 0) and not monitor.stats().pending)
    stats = monitor.stats()
    assert 0 < stats.spooled < 200 and stats.spooled + stats.skipped["spool_full"] == 200
    away.away = False
    assert monitor.flush(60) == 0
    assert len(away.by_record) == monitor.stats().spooled


def test_a_sink_that_is_away_is_asked_ever_less_often(tmp_path: Path) -> None:
    asked: list[float] = []
    gathered = threading.Event()

    class Asked(Away):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            asked.append(time.monotonic())
            while not gathered.is_set():  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.01)
            await super().write(evaluations)

    monitor = Monitor(metrics=[], sinks=[Asked(name="away"), MemorySink()], spool=tmp_path / "s.db")
    monitor.submit(turn("first"))
    until(lambda: asked)
    for number in range(20):
        monitor.submit(turn(str(number)))
    # What waits behind the first is not tried either.
    until(lambda: monitor.stats().sinks["memory"].written == 21)
    gathered.set()
    until(lambda: len(asked) >= 7)
    # Three tries, and then one at a time, after pauses of .05, .1, .2 and .2 s at least.
    pauses = [later - earlier for earlier, later in pairwise(asked)][2:]
    assert all(pause >= rest for pause, rest in zip(pauses, [0.05, 0.1, 0.2, 0.2], strict=False))


def test_a_batch_is_not_taken_apart_over_a_sink_that_is_away(tmp_path: Path) -> None:
    sizes: list[int] = []
    gathered = threading.Event()

    class Leaves(Away):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            sizes.append(len(evaluations))
            if len(sizes) > 1:
                await super().write(evaluations)
            while not gathered.is_set():  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.01)

    monitor = Monitor(metrics=[], sinks=[Leaves(name="leaves"), MemorySink()], spool=tmp_path / "s.db")
    monitor.submit(turn("first"))
    until(lambda: sizes)
    for number in range(20):
        monitor.submit(turn(str(number)))
    until(lambda: monitor.stats().sinks["leaves"].waiting == 21)
    gathered.set()
    until(lambda: len(sizes) >= 5)
    # Three tries of all that has gathered; then it goes back, and is never written by halves.
    assert sizes[:4] == [1, 20, 20, 20]
    assert sizes[4] != 10


def test_an_outage_in_the_middle_of_a_batch_costs_no_part_of_it(tmp_path: Path) -> None:
    class Breaks(MemorySink):
        calls = 0

        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            self.calls += 1
            if self.calls == 1:
                while not gathered.is_set():  # noqa: ASYNC110 - set by another thread
                    await asyncio.sleep(0.01)
            elif self.calls == 2:
                raise SinkError("one of them is odd", cause="rejected")
            elif self.calls == 3:
                raise SinkError("it cannot be reached", cause="unreachable")
            await super().write(evaluations)

    gathered = threading.Event()
    sink, good = Breaks(name="breaks"), MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink, good], spool=tmp_path / "s.db")
    monitor.submit(turn("first"))
    until(lambda: sink.calls)
    for number in range(6):
        monitor.submit(turn(str(number)))
    until(lambda: monitor.stats().sinks["memory"].written == 7)
    gathered.set()
    assert monitor.flush(60) == 0
    assert len(sink.by_record) == monitor.stats().sinks["breaks"].written == 7


@pytest.mark.parametrize("cause", ["rejected", "unstorable"])
def test_a_refusal_by_name_is_final_at_once(tmp_path: Path, cause: str) -> None:
    sink = Refusing(name="picky")
    sink.error = SinkError("odd", cause=cause)
    monitor = Monitor(metrics=[], sinks=[sink], spool=tmp_path / "s.db")
    finish(monitor, [turn("7")])
    assert monitor.stats().sinks["picky"].refused == {cause: 1}


def test_without_a_spool_a_result_whose_trace_has_not_come_is_refused_by_name() -> None:
    class Knows(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            if any(one.record_id == "early" for one in evaluations):
                raise SinkError("there is no such trace", cause="trace_not_found")
            await super().write(evaluations)

    sink = Knows()
    monitor = Monitor(metrics=[], sinks=[sink])
    finish(monitor, (turn(name) for name in ("a", "early", "b")))
    counts = monitor.stats().sinks[sink.name]
    assert (counts.written, counts.refused, counts.lost) == (2, {"trace_not_found": 1}, 0)


def test_a_sink_is_not_asked_all_the_time_about_a_result_whose_trace_has_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.online._sink_writer._LATE_PAUSE", 3600.0)
    for pause in ("_LOOK", "_AGAIN"):
        monkeypatch.setattr(f"steelyard.online._delivery.{pause}", 0.01)
    asked: Counter[str] = Counter()

    class Knows(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            asked.update(one.record_id for one in evaluations)
            if any(one.record_id == "early" for one in evaluations):
                raise SinkError("there is no such trace", cause="trace_not_found")
            await super().write(evaluations)

    monitor = Monitor(metrics=[], sinks=[sink := Knows()], spool=tmp_path / "s.db")
    monitor.submit(turn("early"))
    until(lambda: monitor.stats().spool is not None and check_spool(monitor.stats()).waiting == {"memory": 1})
    for number in range(10):
        monitor.submit(turn(str(number)))
        until(lambda: len(sink.evaluations) > number)  # noqa: B023
    monitor.close(0)
    assert asked["early"] == 1


def test_failures_of_an_outage_do_not_count_against_a_result_that_fails_alone_later(tmp_path: Path) -> None:
    began, judged = threading.Event(), threading.Event()

    class Fails(MemorySink):
        outage, alone = 2, 2

        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            names = {one.record_id for one in evaluations}
            if names == {"first"}:
                began.set()
                await asyncio.to_thread(judged.wait, 120)
            elif self.outage:
                self.outage -= 1
                raise ValueError("nothing is taken")
            elif "odd" in names and (len(names) > 1 or self.alone):
                self.alone -= len(names) == 1
                raise ValueError("this one is not taken")
            await super().write(evaluations)

    sink = Fails()
    monitor = Monitor(metrics=[], sinks=[sink])
    monitor.submit(turn("first"))
    assert began.wait(120)
    for name in ("a", "odd", "b", "c"):
        monitor.submit(turn(name))
    until(lambda: monitor.stats().sinks[sink.name].waiting == 5)
    judged.set()
    assert monitor.flush(60) == 0
    assert set(sink.by_record) == {"first", "a", "odd", "b", "c"} and sink.alone == 0


def test_an_outage_is_not_taken_for_a_refusal(tmp_path: Path) -> None:
    class Fails(Away):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            if self.away:
                raise ValueError("it says nothing of what is wrong")
            await super().write(evaluations)

    sink = Fails(name="fails")
    monitor = Monitor(metrics=[], sinks=[sink], spool=tmp_path / "s.db")
    for number in range(5):
        monitor.submit(turn(str(number)))
    assert monitor.flush(1.5) == 5
    sink.away = False
    assert monitor.flush(60) == 0
    assert len(sink.by_record) == 5
