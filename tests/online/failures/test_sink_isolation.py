"""A sink that raises, blocks or is slow costs its own results, and nothing else."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from online.failures.parts import ENDINGS, finished
from online.helpers import FAITHFUL, kind_judge, turn
from steelyard.errors import SinkError
from steelyard.online import Monitor
from steelyard.record import Context
from steelyard.scores import Evaluation
from steelyard.sinks import SQLiteSink
from steelyard.testing import MemorySink
from waiting import until

pytestmark = pytest.mark.faults


class Odd(SinkError):
    """Its cause is not a word, which counts would hold otherwise."""

    def __init__(self) -> None:
        super().__init__("odd", cause="rejected")
        self.cause = [7]  # type: ignore[assignment]


@pytest.mark.parametrize("error", [*ENDINGS, Odd])
def test_what_a_sink_raises_is_its_own_loss(error: type[BaseException]) -> None:
    class Bad(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            await asyncio.create_task(self._raise())

        async def _raise(self) -> None:
            raise error

    good = MemorySink()
    monitor = Monitor(metrics=[], sinks=[Bad(name="bad"), good])
    for number in range(20):
        monitor.submit(turn(f"{number}"))
    stats = finished(monitor, turns=20)
    assert stats.evaluated == stats.sinks["memory"].written == len(good.evaluations) == 20
    assert stats.sinks["bad"].lost == 20
    assert set(stats.sinks["bad"].lost_by) <= {error.__name__, "resting"}


def test_what_waits_between_two_tries_at_the_end_is_counted_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fails(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            tried.set()
            raise OSError("away")

    monkeypatch.setattr("steelyard.online._sink_writer._PAUSE", 300)
    tried = threading.Event()
    monitor = Monitor(metrics=[], sinks=[Fails(name="fails")])
    monitor.submit(turn())
    assert tried.wait(60)
    monitor.close(0.1)
    counts = monitor.stats().sinks["fails"]
    assert (counts.lost_by, counts.waiting) == ({"closed": 1}, 0)


def test_a_write_that_takes_too_long_is_cancelled() -> None:
    class Hangs(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

    cancelled = threading.Event()
    monitor = Monitor(metrics=[], sinks=[Hangs(name="hangs")], sink_timeout=0.2)
    monitor.submit(turn())
    assert cancelled.wait(60)


def test_a_slow_sink_holds_up_neither_judging_nor_sqlite(tmp_path: Path) -> None:
    class Slow(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            while not written.is_set():  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.01)
            await super().write(evaluations)

    written = threading.Event()
    slow, sqlite = Slow(name="slow"), SQLiteSink(tmp_path / "results.db")
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[slow, sqlite])
    for number in range(60):
        monitor.submit(turn(f"{number}"))
    until(lambda: monitor.stats().sinks[sqlite.name].written == 60)
    assert not slow.evaluations
    assert monitor.stats().pending > 0
    written.set()
    stats = finished(monitor, turns=60)
    assert stats.sinks["slow"].written == len(slow.evaluations) == 60


def test_a_sink_that_blocks_its_thread_is_left_behind_and_another_thread_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("steelyard.online._sink_writer.GRACE", 0.1)
    release = threading.Event()

    class Blocks(MemorySink):
        calls = 0
        threads: list[int] = []

        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            self.calls += 1
            self.threads.append(threading.get_ident())
            if self.calls == 1:
                release.wait(120)
            await super().write(evaluations)

    blocking, good = Blocks(name="blocks"), MemorySink()
    monitor = Monitor(metrics=[], sinks=[blocking, good], sink_timeout=1)
    monitor.submit(turn("first"))
    stats = finished(monitor, turns=1)
    assert stats.sinks["blocks"].lost_by == {"hangs": 1}
    monitor.submit(turn("second"))
    stats = finished(monitor, turns=2)
    assert (stats.sinks["blocks"].written, stats.sinks["memory"].written) == (1, 2)
    assert list(blocking.by_record) == ["second"]
    release.set()
    until(lambda: "first" in blocking.by_record)
    for number in range(20):
        monitor.submit(turn(f"later {number}"))
        finished(monitor, turns=3 + number)
    # What was left behind ends, and takes nothing from the thread that went on.
    assert blocking.threads[0] not in blocking.threads[1:]


def test_a_sink_that_blocked_more_threads_than_it_may_works_again_once_they_return(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("steelyard.online._sink_writer.GRACE", 0.02)
    monkeypatch.setattr("steelyard.online._sink_writer._HANGING", 1)
    release = threading.Event()

    class Blocks(MemorySink):
        calls = 0

        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            self.calls += 1
            release.wait(120)
            await super().write(evaluations)

    blocking = Blocks(name="blocks")
    monitor = Monitor(metrics=[], sinks=[blocking], sink_timeout=0.05, spool=tmp_path / "s.db")
    monitor.submit(turn("first"))
    until(lambda: blocking.calls == 2)
    monitor.submit(turn("second"))
    assert monitor.flush(1) == 2
    assert blocking.calls == 2
    release.set()
    assert monitor.flush(60) == 0
    assert set(blocking.by_record) == {"first", "second"}


@pytest.mark.parametrize("bound", ["places", "bytes"])
def test_a_sink_slower_than_the_turns_loses_the_rest_by_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, bound: str
) -> None:
    if bound == "places":
        monkeypatch.setattr("steelyard.online._sink_writer._PLACES", 10)
    # Of a megabyte each, sixteen fill the queue.
    contexts = tuple(Context(text="x" * 50_000) for _ in range(1 if bound == "places" else 20))
    release = threading.Event()

    class Waits(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            await asyncio.to_thread(release.wait, 120)
            await super().write(evaluations)

    monitor = Monitor(metrics=[], sinks=[Waits(name="waits"), MemorySink()])
    for number in range(20):
        for part in range(5):
            monitor.submit(turn(f"{number} {part}", contexts=contexts))
        until(partial(_has_written, monitor, 5 * number + 5))
    release.set()
    stats = finished(monitor, turns=100)
    counts = stats.sinks["waits"]
    assert counts.written + counts.lost_by["queue_full"] == 100
    assert counts.lost == counts.lost_by["queue_full"] >= 50
    assert bound == "places" or counts.written <= 5 + 17
    [said] = [record.message for record in caplog.records if "'waits'" in record.message]
    assert "is slower than the turns" in said


def test_a_spool_waits_for_a_slow_sink_instead_of_losing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("steelyard.online._sink_writer._PLACES", 2)
    monkeypatch.setattr("steelyard.online._sink_thread._BATCH", 2)

    class Slow(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            await asyncio.sleep(0.02)
            await super().write(evaluations)

    slow = Slow(name="slow")
    monitor = Monitor(metrics=[], sinks=[slow], spool=tmp_path / "s.db", concurrency=1)
    for number in range(30):
        monitor.submit(turn(f"{number}"))
    stats = finished(monitor, turns=30)
    assert stats.sinks["slow"].written == len(slow.evaluations) == 30
    assert not caplog.records


def _has_written(monitor: Monitor, turns: int) -> bool:
    return monitor.stats().sinks["memory"].written == turns


def test_what_a_sink_that_blocks_its_thread_has_at_the_end_is_counted_as_lost() -> None:
    began, release = threading.Event(), threading.Event()

    class Blocks(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            began.set()
            release.wait(60)

    monitor = Monitor(metrics=[], sinks=[Blocks(name="blocks")])
    monitor.submit(turn("being written"))
    assert began.wait(60)
    monitor.submit(turn("waits"))
    until(lambda: monitor.stats().sinks["blocks"].waiting == 2)
    monitor.close(0.1)
    counts = monitor.stats().sinks["blocks"]
    release.set()
    assert (counts.waiting, counts.written, counts.lost_by) == (0, 0, {"closed": 2})


def test_a_sink_that_stays_away_is_asked_every_thirty_seconds_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a clock that runs a hundred times as fast."""
    asked, clock = list[float](), SimpleNamespace(monotonic=lambda: 100 * time.monotonic())

    class Gone(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            asked.append(clock.monotonic())
            raise SinkError("gone", cause="unreachable")

    monkeypatch.setattr("steelyard.online._sink_writer.time", clock)
    monkeypatch.setattr("steelyard.online._sink_writer._PAUSE", 0)
    monkeypatch.setattr("steelyard.online._sink_writer._FIRST_REST", 1.0)
    monitor = Monitor(metrics=[], sinks=[Gone()])

    def rests() -> list[float]:
        monitor.submit(turn())
        found = [later - earlier for earlier, later in pairwise(asked)]
        return [rest for rest in found if rest > 0.9]

    until(lambda: len(rests()) >= 14, seconds=20)
    assert min(rests()[6:14]) >= 29.9
