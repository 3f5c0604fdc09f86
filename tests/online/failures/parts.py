"""What may end a thread, a judge whose server misbehaves on cue, and how all went all the same."""

from __future__ import annotations

import asyncio
from typing import Any

from judge_server import JudgeServer
from online.helpers import FAITHFUL, check_law, turn
from steelyard.judge.chat import ChatJudge
from steelyard.online import Monitor, Stats
from steelyard.testing import MemorySink

ENDINGS: list[type[BaseException]] = [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit]


def finished(monitor: Monitor, *, turns: int, seconds: float = 60) -> Any:
    """Everything went through, and the equations hold."""
    left = monitor.flush(seconds)
    stats = monitor.stats()
    # Told in one flush only.
    assert left <= sum(counts.lost for counts in stats.sinks.values()) and not stats.pending
    check_law(stats)
    assert stats.seen == turns
    for counts in stats.sinks.values():
        assert counts.waiting == 0
        assert counts.lost == sum(counts.lost_by.values())
    return stats


def chat(server: JudgeServer, **options: Any) -> ChatJudge:
    return ChatJudge("stub", base_url=server.url, api_key="k", **options)


def run(judge: Any, *, turns: int = 1, seconds: float = 60, **options: Any) -> tuple[Stats, MemorySink]:
    """Have some turns judged; everything must be accounted for, at the end and on the way."""
    sink = MemorySink()
    monitor = Monitor(metrics=FAITHFUL, judge=judge, sinks=[sink], **options)
    for number in range(turns):
        monitor.submit(turn(f"turn {number}"))
        check_law(monitor.stats())
    assert monitor.flush(seconds) == 0
    stats = monitor.stats()
    check_law(stats)
    monitor.close()
    return stats, sink


def causes(sink: MemorySink) -> list[str | None]:
    return [evaluation["faithfulness"].cause for evaluation in sink.evaluations]
