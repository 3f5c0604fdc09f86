"""Functions and objects of the application that do what nobody expects, none of which may hold others up."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import math
import pickle
import threading
from collections.abc import Iterator, Sequence
from cProfile import Profile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from online.helpers import FAITHFUL, TestDraft, check_law, kind_judge, turn, yes
from steelyard.errors import ConfigurationError, JudgeError, SinkError
from steelyard.online import Monitor, Selection
from steelyard.online.queue._turns import size_of
from steelyard.questions import Reply, Request
from steelyard.record import Context, Record, TraceRef
from steelyard.scores import Evaluation
from steelyard.sinks import Sink
from steelyard.testing import MemorySink, ScriptedJudge

pytestmark = pytest.mark.faults
BAD = turn("bad", answer="It went badly.")
GOOD = {f"good {number}" for number in range(5)}


def judged(
    bad: Any = BAD, *, sinks: Sequence[Sink] = (), lost: int = 0, **given: Any
) -> tuple[Monitor, MemorySink]:
    """One bad turn and five good ones have gone through a Monitor, whose sinks lost so many results."""
    sink = MemorySink()
    options: dict[str, Any] = {"metrics": FAITHFUL, "judge": kind_judge()} | given
    monitor = Monitor(**options, sinks=[sink, *sinks])
    monitor.submit(bad)
    for name in sorted(GOOD):
        monitor.submit(turn(name))
    assert monitor.flush(60) == lost
    check_law(monitor.stats())
    assert monitor.stats().seen == 6
    assert set(sink.by_record) >= GOOD
    return monitor, sink


class Judge(ScriptedJudge):
    """A judge that does something of its own with the bad turn."""

    async def answer(self, request: Request) -> Reply:
        if "badly" in str(asdict(request)):
            await self.go_wrong()
        return await super().answer(request)

    async def go_wrong(self) -> None:
        raise NotImplementedError


def test_a_mask_that_raises_stop_iteration_drops_its_turn_at_once(caplog: pytest.LogCaptureFixture) -> None:
    def mask(record: Record) -> Record:
        if record.id == "bad":
            next(iter(()))
        return record

    monitor, _ = judged(mask=mask, mask_timeout=60)
    assert monitor.stats().skipped == {"mask_failed": 1}
    assert "the mask raised StopIteration" in caplog.text
    monitor.close()


def test_a_loop_that_is_stopped_runs_on(caplog: pytest.LogCaptureFixture) -> None:
    class Stops(Judge):
        async def go_wrong(self) -> None:
            asyncio.get_running_loop().stop()

    class StopsToo(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            asyncio.get_running_loop().stop()
            await asyncio.sleep(0)
            await super().write(evaluations)

    second = StopsToo(name="second")
    monitor, sink = judged(judge=Stops(yes), sinks=[second])
    assert len(sink.evaluations) == len(second.evaluations) == 6
    assert (restarts := monitor.stats().restarts) >= 2
    assert "it goes on" in caplog.text
    monitor.close()
    assert monitor.stats().restarts >= restarts


def test_what_a_judge_began_and_forgot_ends_with_the_monitor() -> None:
    ended = threading.Event()

    async def forgotten() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.set()

    class Forgets(Judge):
        kept: asyncio.Task[None] | None = None

        async def go_wrong(self) -> None:
            self.kept = asyncio.create_task(forgotten())
            await asyncio.sleep(0)

    monitor, _ = judged(judge=Forgets(yes))
    assert not ended.is_set()
    assert monitor.close() == 0
    assert ended.wait(60)


def test_a_judge_that_ignores_its_end_gives_its_place_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("steelyard.online._worker._GRACE", 0.1)
    release = threading.Event()

    class Clings(Judge):
        async def go_wrong(self) -> None:
            while not release.is_set():
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    continue

    # One place to judge in: without it nothing else is judged.
    monitor, _ = judged(judge=Clings(yes), deadline=0.2, concurrency=1)
    assert monitor.stats().dead == {"TimeoutError": 1}
    assert "TimeoutError" in caplog.text
    release.set()
    monitor.close()


class Shy(Exception):
    """An error that raises when it is looked at."""

    @property
    def cause(self) -> str:
        raise KeyError("cause")

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "cause"),
    [(Shy(), "Shy"), (SinkError("no", cause=["a list"]), "SinkError")],  # type: ignore[arg-type]
)
def test_an_odd_error_of_a_sink_loses_its_own_batch_only(error: Exception, cause: str) -> None:
    class Fails(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            raise error

    monitor, _ = judged(sinks=[Fails(name="fails")], lost=6)
    counts = monitor.stats().sinks["fails"]
    assert counts.lost == 6 and set(counts.lost_by) <= {cause, "resting"}
    monitor.close()


@pytest.mark.parametrize("wait", ["30", float("nan"), [], 10**400, -5])
def test_an_odd_wait_of_a_judge_fails_its_own_turn_only(wait: Any) -> None:
    class Fails(Judge):
        async def go_wrong(self) -> None:
            error = JudgeError("no", cause="bad_request")
            error.retry_after = wait
            raise error

    monitor, sink = judged(judge=Fails(yes))
    (score,) = sink.by_record["bad"].scores
    assert (score.status, score.cause) == ("failed", "bad_request")
    assert not monitor.stats().dead
    monitor.close()


def test_counts_of_a_sink_that_raise_cost_no_stats() -> None:
    class Uncounted(MemorySink):
        @property
        def counts(self) -> Any:
            raise KeyError("counts")

    monitor, _ = judged(sinks=[Uncounted(name="uncounted")])
    counts = monitor.stats().sinks["uncounted"]
    assert (counts.written, counts.scores) == (6, None)
    monitor.close()


async def awaited(*_: Any) -> Any:
    raise AssertionError("nobody awaits this")


class Awaited:
    async def __call__(self, *_: Any) -> Any:
        raise AssertionError("nobody awaits this")


@pytest.mark.parametrize("function", [awaited, Awaited()])
def test_functions_that_nobody_would_await_are_refused(function: Any) -> None:
    monitor = Monitor(metrics=[], sinks=[])
    for wrong in (
        lambda: Monitor(metrics=[], sinks=[], mask=function),
        lambda: Selection(choose=function),
        lambda: monitor.on_evaluation(function),
        lambda: monitor.on_decision(function),
    ):
        with pytest.raises(ConfigurationError, match="coroutine function"):
            wrong()


class Endless(dict[str, Any]):
    """A mapping without end."""

    def values(self) -> Any:
        return iter(int, 1)

    def items(self) -> Any:
        return iter(lambda: ("a", 1), 0)


class EndlessList(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(int, 1)


@pytest.mark.parametrize("odd", [Endless(a=1), {"x": Endless(a=1)}, {"x": EndlessList([1])}, {"x": {1, "a"}}])
def test_data_without_end_has_a_size(odd: Any) -> None:
    bad = turn("bad", metadata=odd, tags=EndlessList(["a"]))
    assert 0 < size_of(bad) < 10**7
    _, sink = judged(bad)
    assert set(sink.by_record) == GOOD | {"bad"}


def test_a_million_passages_are_weighed_by_a_few() -> None:
    bad = turn("bad", contexts=(Context(text="a" * 100), Context(text="a" * 100)) * 100_000)
    weighing = Profile()
    with weighing:
        size = size_of(bad)
    calls = sum(entry.callcount for entry in weighing.getstats())
    assert calls < 50_000
    known = 100 * size_of(turn("bad", contexts=bad.contexts[:2000]))
    assert 0.9 * known < size < 1.1 * known


@pytest.mark.parametrize("size", [None, "x", math.nan, math.inf, -(10**12)])
@pytest.mark.parametrize("sample_rate", [1.0, 0.9999999])
def test_a_draft_of_no_possible_size_is_not_a_turn(size: Any, sample_rate: float) -> None:
    monitor, _ = judged(TestDraft(turn("bad"), id="bad", size=size), sample_rate=sample_rate)
    assert monitor.stats().skipped == {"unreadable": 1}
    assert 0 <= monitor.stats().queued_bytes < 10**7
    monitor.close()


class Text(str):
    """A string that can do nothing."""

    def encode(self, *_: Any) -> bytes:
        raise ValueError

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("given", "kept"),
    [(7, "7"), (Text("a"), "a"), (2.5, "2.5"), (None, None), ([1], "[1]")],
    ids=["integer", "odd text", "float", "none", "list"],
)
def test_an_id_of_another_kind_becomes_a_text(given: Any, kept: str | None) -> None:
    record = turn("x", question="Who?").replace(id=given)
    assert type(record.id) is str
    assert record.id == kept if kept else len(record.id) == 32
    _, sink = judged(record)
    assert set(sink.by_record) == GOOD | {record.id}


def test_a_trace_of_integers_is_written_as_the_tracer_would() -> None:
    record = turn("bad", trace=TraceRef(trace_id=0xABC, span_id=7))  # type: ignore[arg-type]
    assert record.trace == TraceRef(trace_id=f"{0xABC:032x}", span_id=f"{7:016x}")
    assert TraceRef(trace_id=0, span_id=2**64) == TraceRef()  # type: ignore[arg-type]
    assert TraceRef(trace_id=Text("a")) == TraceRef(trace_id="a")


def leaves(*_: object) -> Any:
    raise SystemExit


@pytest.mark.parametrize("base", [str, dict, list, tuple])
def test_whoever_waits_runs_no_code_of_the_values_in_a_turn(base: type) -> None:
    methods = ("__len__", "__bool__", "__iter__", "__sizeof__", "values", "keys")
    odd = type("Odd", (base,), dict.fromkeys(methods, leaves))({"a": 1} if base is dict else "ab")
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[])
    for number in range(500):
        monitor.submit(turn(f"{number}").replace(metadata=odd if base is dict else {"odd": odd}))
        assert monitor.flush(0) >= 0
    assert monitor.flush(60) == 0
    assert monitor.stats().seen == 500


def test_counts_can_be_copied_and_written(tmp_path: Path) -> None:
    begun = asdict(Monitor(metrics=[], sinks=[]).stats())
    assert {name: one for name, one in begun.items() if isinstance(one, int | float) and one} == {}
    monitor, _ = judged(object(), spool=tmp_path / "s.db")
    stats = monitor.stats()
    monitor.close()
    assert json.loads(json.dumps(asdict(stats)))["skipped"] == {"unreadable": 1}
    assert pickle.loads(pickle.dumps(stats)) == copy.deepcopy(stats) == stats


class RaisingHandler(logging.Handler):
    """A log handler of the application that can do nothing."""

    lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += 1
        raise RuntimeError


class BrokenSink(MemorySink):
    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        raise SinkError("down", cause="unreachable")


def no_mask(record: Record) -> Record:
    raise ValueError


def no_callback(evaluation: Evaluation) -> None:
    raise ValueError


@pytest.mark.parametrize("mask", [None, no_mask])
def test_a_log_handler_that_raises_harms_nothing(mask: Any) -> None:
    handler = RaisingHandler()
    logging.getLogger("steelyard").addHandler(handler)
    try:
        sink = MemorySink()
        monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[BrokenSink(), sink], mask=mask)
        monitor.on_evaluation(no_callback)
        for number in range(5):
            monitor.submit(object())  # type: ignore[arg-type]
            monitor.submit(turn(f"{number}"))
        assert monitor.flush(60) == (0 if mask else 5), "the broken sink has lost them"
        stats = monitor.stats()
        monitor.close()
    finally:
        logging.getLogger("steelyard").removeHandler(handler)
    assert handler.lines >= 2
    assert stats.skipped == {"unreadable": 5} | ({"mask_failed": 5} if mask else {})
    assert len(sink.evaluations) == stats.evaluated == (0 if mask else 5)
