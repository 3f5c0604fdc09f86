"""`evaluate=False` is a promise: whatever its queue does, such a process never judges."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from online.helpers import FAITHFUL, check_law, kind_judge, turn
from steelyard.online import Canaries, Monitor, SpoolSettings
from steelyard.testing import MemorySink
from waiting import until

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
    check_law(stats)
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
    monitor.close()
