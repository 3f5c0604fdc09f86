"""Whatever fails in whatever order: the ledger adds up, and each sink gets what was accepted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from online.helpers import FAITHFUL, check_law, turn
from servers import NatsServer
from steelyard.errors import JudgeError, JudgeUnavailable, SinkError
from steelyard.judge.middleware import CircuitBreaker
from steelyard.online import Monitor, SpoolSettings
from steelyard.questions import Answer, Question, Request, YesNo
from steelyard.scores import Evaluation
from steelyard.testing import MemorySink, ScriptedJudge

pytestmark = pytest.mark.faults
STEPS, SINKS, ENDS = 40, ("first", "second"), ("x", "y", *[""] * 16)
RAISED = (SinkError("away", cause="unreachable"), ValueError("odd"), TimeoutError(), SystemExit())


class World:
    """A judge and two sinks that fail by turns, and what they were given by all Monitors so far."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.judge_is_away = False
        self.away: set[str] = set()
        self.written: dict[str, Counter[str]] = {name: Counter() for name in SINKS}
        self.causes: set[str | None] = set()

    def monitor(self, spool: SpoolSettings | None) -> Monitor:
        judge = CircuitBreaker(ScriptedJudge(self._say), reset_after=0.02)
        sinks = [_Sink(self, name) for name in SINKS]
        return Monitor(metrics=FAITHFUL, judge=judge, sinks=sinks, spool=spool, concurrency=4)

    def _say(self, question: Question, request: Request) -> Answer:
        if self.judge_is_away:
            raise JudgeUnavailable("away", cause="unreachable")
        if self.draw.random() < 0.1:
            raise JudgeError("odd", cause="malformed_reply")
        return YesNo(value=True, probability=0.9)


class _Sink(MemorySink):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(name=name)
        self.world = world

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        names = [evaluation.record_id for evaluation in evaluations]
        if self.name in self.world.away:
            raise self.world.draw.choice(RAISED)
        # Refused for good: by name, or because it fails while others are taken.
        if any(name.endswith("x") for name in names):
            raise SinkError("odd", cause="rejected")
        if any(name.endswith("y") for name in names):
            raise ValueError("odd")
        self.world.written[self.name].update(names)
        self.world.causes |= {score.cause for one in evaluations for score in one.scores}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("_sink_writer._PAUSE", "_delivery._LOOK", "_delivery._AGAIN"):
        monkeypatch.setattr(f"steelyard.online.{pause}", 0.01)
    monkeypatch.setattr("steelyard.online._sink_writer._FIRST_REST", 0.1)
    monkeypatch.setattr("steelyard.online._sink_writer._LONGEST_REST", 0.2)
    monkeypatch.setattr("steelyard.online._worker._FIRST_WAIT", 0.01)
    monkeypatch.setattr("steelyard.online._worker._LONGEST_WAIT", 0.05)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "queue", ["memory", *(pytest.param(name, marks=pytest.mark.slow) for name in ("file", "nats"))]
)
def test_each_turn_is_written_once_whatever_failed_in_whatever_order(
    queue: str, seed: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    draw = Random(seed)
    world, spool = World(draw), None
    if queue != "memory":
        server: NatsServer | None = request.getfixturevalue("nats_server") if queue == "nats" else None
        spool = SpoolSettings(path=server.queue() if server else tmp_path / "s.db")
    monitor, names, abandoned, restarts = world.monitor(spool), list[str](), 0, 0
    acts = ["submit", "submit", "submit", "sink", "judge", "flush", *["restart"] * (queue != "memory")]
    for step in range(STEPS):
        act = draw.choice(acts)
        if act == "submit":
            some = [f"{step}-{number}{draw.choice(ENDS)}" for number in range(draw.randint(1, 8))]
            names += some
            for name in [*some, draw.choice(names)]:
                monitor.submit(turn(name))
        elif act == "sink":
            world.away ^= {draw.choice(SINKS)}
        elif act == "judge":
            world.judge_is_away = not world.judge_is_away
        elif act == "flush":
            monitor.flush(draw.choice([0, 0.02]))
        else:
            monitor.close(draw.choice([0, 0.2]))
            check_law(monitor.stats())
            abandoned += monitor.stats().abandoned
            restarts += 1
            monitor = world.monitor(spool)
            monitor.start()
        check_law(monitor.stats())
    world.judge_is_away, world.away = False, set()
    left = monitor.flush(60)
    stats = monitor.stats()
    check_law(stats)
    assert stats.pending == 0 and left <= sum(sink.lost for sink in stats.sinks.values())
    assert set(stats.skipped) <= {"duplicate"} and not stats.abandoned and not stats.dead
    wanted = {name for name in names if name[-1] not in "xy"}
    for name, written in world.written.items():
        sink = stats.sinks[name]
        # Who is closed in the middle of a write brings it again.
        assert max(written.values(), default=0) <= 1 + restarts and sink.waiting == 0, written.most_common(3)
        if spool is None:  # what it could not take is lost, by name
            assert len(names) == stats.evaluated == sink.written + sink.lost + sum(sink.refused.values())
            assert len(written) == sink.written
        else:
            assert world.causes <= {None, "malformed_reply"}  # turns wait for a judge that is away
            assert set(written) <= wanted and len(wanted - set(written)) <= abandoned and sink.lost == 0
