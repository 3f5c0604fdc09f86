"""A Monitor whose spool is corrupt, breaks, is locked, full or cannot be opened at all."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from online.helpers import check_law, check_spool, finish, turn
from steelyard.online import Monitor, Spool, SpoolSettings
from steelyard.online._worker import _again_and_again
from steelyard.online.queue import _spool_file
from steelyard.testing import MemorySink
from waiting import until


@pytest.mark.faults
def test_a_corrupt_spool_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "s.db"
    Spool(path).close()
    path.write_bytes(path.read_bytes()[:100] + b"no page of a database" * 1000)
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], spool=path)
    with caplog.at_level(logging.ERROR, "steelyard"):
        finish(monitor, [turn("a")])
    assert len(sink.evaluations) == 1
    assert {file.name.split("-")[0] for file in tmp_path.iterdir()} == {"s.db.damaged"}
    assert len(caplog.records) == 1
    stats = monitor.stats()
    assert (stats.spooled, stats.evaluated) == (0, 1)


@pytest.mark.faults
@pytest.mark.parametrize("evaluate", [False, True])
def test_a_spool_that_breaks_in_mid_flight_loses_nothing_in_memory(tmp_path: Path, evaluate: bool) -> None:
    path = tmp_path / "s.db"
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], spool=SpoolSettings(path=path, evaluate=evaluate))
    finish(monitor, [turn("before")])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DROP TABLE turns")
    db.close()
    finish(monitor, (turn(f"after{number}") for number in range(20)))
    stats = monitor.stats()
    # A process that may not judge waits until the file, made anew, takes its turns.
    assert stats.spooled + stats.evaluated == 21 and (evaluate or not stats.evaluated)
    after = {f"after{number}" for number in range(20)}
    assert {e.record_id for e in sink.evaluations} == (after | {"before"} if evaluate else set())


@pytest.mark.faults
def test_a_full_disk_is_waited_for_by_a_process_that_may_not_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _spool_file.connect

    def small(*args: object, **options: object) -> sqlite3.Connection:
        connection = real(*args, **options)  # type: ignore[arg-type]
        connection.execute("PRAGMA max_page_count = 30")
        return connection

    monkeypatch.setattr("steelyard.online.queue._spool.connect", small)
    sink = MemorySink()
    settings = SpoolSettings(path=tmp_path / "s.db", evaluate=False)
    monitor = Monitor(metrics=[], sinks=[sink], spool=settings)
    for number in range(20):
        monitor.submit(turn(f"turn{number}", answer=f"{number}" * 10_000))
        monitor.flush(0.2)
    stats = monitor.stats()
    check_law(stats)
    assert 0 < stats.spooled < 20 and stats.pending == 20 - stats.spooled
    assert stats.evaluated == len(sink.evaluations) == 0
    monkeypatch.undo()
    until(lambda: monitor.stats().spooled == 20)


@pytest.mark.faults
def test_a_spool_that_cannot_be_opened(tmp_path: Path) -> None:
    monitor = Monitor(metrics=[], sinks=[], spool=tmp_path / "s.db")
    (tmp_path / "s.db").mkdir()
    finish(monitor, [turn()])
    assert monitor.stats().evaluated == 1


@pytest.mark.parametrize(
    ("serves", "expected"),
    [(False, [0.5, 1, 2, 4, 8, 16, 30, 30, 30]), (True, [0.5, 1, 2, 0.5, 1, 2, 0.5, 1, 2])],
    ids=["it does not open", "every third time it works for long"],
)
def test_a_spool_that_failed_is_tried_again_after_half_a_second_and_then_ever_less_often(
    serves: bool, expected: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Monitor(metrics=[], sinks=[], spool=tmp_path / "s.db")._run.worker
    if not serves:
        (tmp_path / "s.db").mkdir()
    pauses: list[float] = []
    own, real, clock = threading.get_ident(), asyncio.sleep, [0.0]

    async def serve() -> None:
        clock[0] += 31.0 * (len(pauses) % 3 == 0)

    async def sleep(seconds: float) -> None:
        # Monitors of other tests may not have ended yet.
        if threading.get_ident() != own:
            return await real(seconds)
        pauses.append(seconds)
        if len(pauses) == 9:
            raise asyncio.CancelledError

    async def try_to_open() -> None:
        assert worker.spool is not None
        worker.spool.start()
        if serves:
            await worker.spool.open()
        await _again_and_again(worker.spool, serve)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr("steelyard.online._worker.time", Mock(monotonic=lambda: clock[0]))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(try_to_open())
    assert pauses == expected


@pytest.mark.faults
def test_a_locked_spool_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    monitor = Monitor(metrics=[], sinks=[], spool=path)
    finish(monitor, [turn()])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monitor.submit(turn())
    assert monitor.flush(7) == 1  # longer than SQLite itself waits
    other.execute("COMMIT")
    other.close()
    assert monitor.flush(60) == 0
    assert check_spool(monitor.stats()).evaluated == 2


def test_the_size_cap_skips_by_name(tmp_path: Path) -> None:
    monitor = Monitor(
        metrics=[],
        sinks=[],
        spool=SpoolSettings(path=tmp_path / "s.db", max_bytes=10_000, evaluate=False),
    )
    finish(monitor, (turn(f"turn{number}", answer="x" * 3_000) for number in range(10)))
    stats = monitor.stats()
    assert stats.skipped["spool_full"] + stats.spooled == 10
    assert 0 < stats.spooled < 5
    check_spool(stats)
