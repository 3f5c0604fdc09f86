"""What is closed holds no file open, leaves no thread behind, and can be collected."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alarms.alarm_parts import listening, scored
from collect.parts import protobuf, turn_spans
from collect.running import Running
from steelyard import Monitor
from steelyard.alarms import Alarm, AlarmSink, AlarmWatcher
from steelyard.judge import LocalJudge
from steelyard.judge.middleware import Cache
from steelyard.metrics import Faithfulness
from steelyard.online import SpoolSettings
from steelyard.questions import YesNo
from steelyard.record import Context, Record
from steelyard.results import open_results
from steelyard.sinks import JSONLSink, SQLiteSink
from steelyard.testing import MemorySink, ScriptedJudge
from waiting import until

_OPEN = Path("/proc/self/fd")
TURN = Record(question="Where?", contexts=(Context(text="It lies in Rome."),), answer="It lies in Rome.")


@contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    """Files of a folder that are open at the end, and threads that were not there before, are waited for."""
    before = set(threading.enumerate())
    yield
    until(lambda: not set(threading.enumerate()) - before, seconds=60)
    if _OPEN.exists():
        until(lambda: not list(_open_in(folder)), seconds=60)


def _open_in(folder: Path) -> Iterator[str]:
    for one in os.listdir(_OPEN):
        try:
            path = os.readlink(_OPEN / one)
        except OSError:
            continue
        if path.startswith(str(folder)):
            yield path


def test_a_monitor_with_all_that_it_may_have(tmp_path: Path) -> None:
    with nothing_left(tmp_path):
        alarm = Alarm(metric="faithfulness", below=0.8)
        monitor = Monitor(
            metrics=[Faithfulness()],
            judge=Cache(LocalJudge(), path=tmp_path / "cache.db"),
            mask=lambda record: record,
            spool=SpoolSettings(path=tmp_path / "spool.db"),
            sinks=[
                SQLiteSink(tmp_path / "results.db"),
                jsonl := JSONLSink(tmp_path / "results.jsonl"),
                AlarmSink([alarm], file=str(tmp_path / "alarms.db")),
            ],
        )
        monitor.submit(TURN)
        assert monitor.flush(60) == 0
        if _OPEN.exists():
            names = {Path(path).name for path in _open_in(tmp_path)}
            assert {"cache.db", "spool.db", "results.db", "alarms.db"} <= names
        monitor.close()
        left = weakref.ref(jsonl)
        del monitor, jsonl
        until(lambda: gc.collect() >= 0 and left() is None, seconds=60)
        results = open_results(tmp_path / "results.db")
        assert results.evaluation(TURN.id) is not None
        results.close()


def test_what_judges_and_sinks_do_at_their_end_is_waited_for() -> None:
    closed = []

    class Judge(ScriptedJudge):
        async def aclose(self) -> None:
            await asyncio.sleep(0.3)
            closed.append("judge")

    class Sink(MemorySink):
        async def aclose(self) -> None:
            await asyncio.sleep(0.3)
            closed.append(self.name)

    judge = Judge(lambda question, request: YesNo(value=True))
    monitor = Monitor(metrics=[Faithfulness()], judge=judge, sinks=[Sink("one"), Sink("two")])
    monitor.submit(TURN)
    assert monitor.close(20) == 0
    assert sorted(closed) == ["judge", "one", "two"]


def test_a_watcher_whose_target_hangs(tmp_path: Path) -> None:
    with listening() as ear, nothing_left(tmp_path):
        alarm = Alarm(metric="faithfulness", below=0.8, to=[f"webhook:{ear.url}/alarms"])
        watcher = AlarmWatcher([alarm], file=str(tmp_path / "alarms.db"))
        assert watcher.take([scored(number, 0.0) for number in range(100)])
        ear.release.clear()
        watcher.start()
        assert ear.came.acquire(timeout=60)
        watcher.close(timeout=0.1)
        ear.release.set()


def test_a_collector(tmp_path: Path) -> None:
    with nothing_left(tmp_path):
        running = Running(tmp_path)
        running.collector.start()
        assert running.ask(protobuf(turn_spans())).status_code == 200
        until(lambda: running.collector.counts.assembled.get("turns") == 1)
        running.collector.close()
        running.monitor.close()
