"""Parts that the tests of the online room share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from steelyard.metrics import Faithfulness, Metric
from steelyard.online import Monitor, QueueCounts, Stats
from steelyard.questions import Answer, Question, Reply, Request, YesNo
from steelyard.record import Context, Record, TraceRef
from steelyard.testing import ScriptedJudge

FAITHFUL: list[Metric] = [Faithfulness(claims="sentences")]


def yes(question: Question, request: Request) -> Answer:
    return YesNo(value=True, probability=0.9)


def kind_judge() -> ScriptedJudge:
    return ScriptedJudge(yes)


@dataclass
class SlowJudge(ScriptedJudge):
    """Takes its time, without holding up anybody else."""

    seconds: float = 0.05
    running: int = 0
    peak: int = 0

    async def answer(self, request: Request) -> Reply:
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            await asyncio.sleep(self.seconds)
            return await super().answer(request)
        finally:
            self.running -= 1


def turn(name: str = "", **changes: Any) -> Record:
    fields: dict[str, Any] = {
        "question": "Who found polonium?",
        "answer": "Marie Curie found polonium.",
        "contexts": (Context(text="Marie Curie found polonium in 1898.", score=0.9),),
        **changes,
    }
    return Record(**({"id": name} if name else {}) | fields)


def traced(number: int, **changes: Any) -> Record:
    return turn(trace=TraceRef(trace_id=f"{number:032x}", span_id=f"{number:016x}"), **changes)


def finish(monitor: Monitor, turns: Iterable[Any], *, seconds: float = 60) -> None:
    """Submit turns, and wait until all is done about them."""
    for one in turns:
        monitor.submit(one)
    assert monitor.flush(seconds) == 0


def check_law(stats: Stats) -> None:
    """Law 2: nothing is lost, at any moment."""
    assert stats.seen == stats.accepted + sum(stats.skipped.values())
    assert stats.accepted == (
        stats.pending + stats.evaluated + sum(stats.dead.values()) + stats.abandoned + stats.spooled
    )
    for sink in stats.sinks.values():
        assert sink.lost == sum(sink.lost_by.values())
    if (spool := stats.spool) is not None:
        assert spool.accepted == spool.pending + spool.evaluated + sum(spool.dead.values())


@dataclass
class TestDraft:
    """A Draft with a build of the test's choice."""

    __test__ = False

    made: Record | None | Exception
    id: str = "draft"
    trace: TraceRef | None = None
    size: int = 100
    built: int = field(default=0)

    def build(self) -> Record | None:
        self.built += 1
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


class Clock:
    """A clock that moves only when told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def check_spool(stats: Stats) -> QueueCounts:
    check_law(stats)
    assert stats.spool is not None
    assert stats.spool.accepted == stats.spool.pending + stats.spool.evaluated + sum(
        stats.spool.dead.values()
    )
    return stats.spool
