"""What is closed holds no file open, leaves no thread behind, and can be collected."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from alarms.alarm_parts import listening, scored
from collect.parts import protobuf, turn_spans
from collect.running import Running
from steelyard import Monitor, evaluate
from steelyard.alarms import Alarm, AlarmSink, AlarmWatcher
from steelyard.engine import evaluate_each
from steelyard.judge import LocalJudge
from steelyard.judge.middleware import Cache
from steelyard.metrics import Faithfulness
from steelyard.online import SpoolSettings
from steelyard.questions import Reply, Request, YesNo
from steelyard.record import Context, Record
from steelyard.results import open_results
from steelyard.scores import Usage
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


class Brought(ScriptedJudge):
    """A judge and an embedder of the caller's, who may go on with it."""

    closed = 0

    async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
        return [[1.0, 0.0] for _ in texts], Usage()

    async def aclose(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("by", ["score", "evaluate", "a stream that is left"])
def test_what_the_caller_brings_stays_open(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Brought]()

    def brought(name: object = "") -> Brought:
        made.append(Brought(lambda question, request: YesNo(value=True)))
        return made[-1]

    def use(**given: Any) -> None:
        metric, turns = Faithfulness(claims="sentences"), [TURN, TURN.replace(id="other")]

        async def left() -> None:
            async with aclosing(evaluate_each(turns, metrics=[metric], **given)) as each:
                async for _ in each:
                    break

        if by == "score":
            asyncio.run(metric.score(TURN, **given))
        elif by == "evaluate":
            evaluate(turns, metrics=[metric], progress=False, **given)
        else:
            asyncio.run(left())

    use(judge=brought(), embedder=brought())
    assert [one.closed for one in made] == [0, 0]
    made.clear()
    # What is made out of a name, or by default, is closed by whoever made it.
    for room in ("metrics._metric", "engine._evaluate_many"):
        judge_from = import_module(f"steelyard.{room}").judge_from
        monkeypatch.setattr(f"steelyard.{room}.StaticEmbedder", brought)
        monkeypatch.setattr(
            f"steelyard.{room}.judge_from",
            lambda given, judge_from=judge_from: brought() if isinstance(given, str) else judge_from(given),
        )
    use(judge="local")
    assert [one.closed for one in made] == [1, 1]


def test_whoever_leaves_a_stream_waits_for_nothing_that_is_under_way() -> None:
    class Hangs(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            if len(self.requests):
                await asyncio.sleep(3600)
            return await super().answer(request)

    judge = Hangs(lambda question, request: YesNo(value=True))
    turns = [TURN.replace(id=str(number)) for number in range(20)]

    async def first() -> str:
        each = evaluate_each(turns, metrics=[Faithfulness(claims="whole")], judge=judge, concurrency=2)
        async with asyncio.timeout(60), aclosing(each):
            return (await anext(each)).record_id
        raise AssertionError

    assert asyncio.run(first()) == "0"


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
