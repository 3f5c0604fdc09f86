"""A Monitor with a judge behind a server that misbehaves on cue."""

from __future__ import annotations

from typing import Any

from judge_server import JudgeServer
from online.helpers import FAITHFUL, check_law, turn
from steelyard.judge.chat import ChatJudge
from steelyard.online import Monitor, Stats
from steelyard.testing import MemorySink


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
