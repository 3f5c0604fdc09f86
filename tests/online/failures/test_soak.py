"""An hour's traffic in two minutes, with 5 % of requests going wrong: nothing lost, nothing leaked."""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from online.helpers import FAITHFUL, check_law, turn
from steelyard.errors import JudgeRejected, JudgeUnavailable, MalformedReply
from steelyard.online import Monitor, Selection, Suspicion
from steelyard.questions import Answer, Question, Reply, Request, Unanswered, YesNo
from steelyard.scores import Evaluation
from steelyard.testing import ScriptedJudge

_SECONDS = 120
_A_SECOND = 150


class Flaky(ScriptedJudge):
    """Fails in one way or another every twentieth time."""

    def __init__(self) -> None:
        super().__init__(self.reply)
        self.rng = random.Random(5)
        self.asked = 0

    async def answer(self, request: Request) -> Reply:
        self.asked += 1
        self.requests.clear()
        return await super().answer(request)

    def reply(self, question: Question, request: Request) -> Answer | None:
        if self.rng.random() > 0.05:
            return YesNo(value=True)
        match self.rng.randrange(5):
            case 0:
                raise JudgeUnavailable("down", cause="unreachable")
            case 1:
                raise JudgeRejected("no", cause="bad_request")
            case 2:
                raise MalformedReply("nonsense")
            case 3:
                return Unanswered(cause="refused")
            case _:
                return None


class Counting:
    """Keeps nothing but counts, and raises now and then."""

    name = "counting"

    def __init__(self) -> None:
        self.rng = random.Random(6)
        self.taken = 0

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        if self.rng.random() < 0.02:
            raise RuntimeError("no room")
        self.taken += len(evaluations)

    async def aclose(self) -> None:
        pass


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.timeout(_SECONDS + 420)
@pytest.mark.parametrize("spooled", [False, True])
def test_soak(spooled: bool, tmp_path: Path) -> None:
    sink = Counting()
    monitor = Monitor(
        metrics=FAITHFUL,
        judge=Flaky(),
        sinks=[sink],
        selection=Selection(rate=0.5, suspicion=Suspicion(rate=1.0)),
        spool=tmp_path / "spool.db" if spooled else None,
    )
    monitor.on_evaluation(lambda evaluation: None)
    rng = random.Random(4)
    submitted, memory = 0, 0
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < _SECONDS:
        while submitted < elapsed * _A_SECOND:
            answer = "Marie Curie found polonium. " + "x" * rng.randrange(2000)
            monitor.submit(turn(answer=answer, status=rng.choice(["ok", "ok", "ok", "error"])))
            submitted += 1
        if elapsed > _SECONDS / 4 and not memory:
            memory = _resident()
        check_law(monitor.stats())
        time.sleep(0.02)
    grown = _resident() - memory
    assert monitor.flush(300) == 0  # on a busy machine much is still to do
    stats = monitor.stats()
    check_law(stats)
    assert stats.seen == submitted
    assert stats.skipped.get("queue_full", 0) == 0
    counts = stats.sinks["counting"]
    if spooled:
        assert stats.spool is not None
        assert stats.spool.accepted == stats.spooled
        assert stats.spool.accepted == stats.spool.evaluated + stats.spool.pending
        assert counts.written + counts.lost == stats.spool.evaluated
    else:
        assert stats.pending == 0
        assert counts.written + counts.lost == stats.evaluated
    assert sink.taken == counts.written
    assert grown < 5 * 2**20, f"{grown / 2**20:.1f} MB"
