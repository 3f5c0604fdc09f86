"""`concurrency` reaches the judge that a Monitor makes from a name."""

from __future__ import annotations

import pytest

from judge_server import JudgeServer
from online.helpers import FAITHFUL, turn
from steelyard.online import Monitor
from steelyard.testing import MemorySink


def test_a_named_judge_asks_as_many_at_a_time_as_turns_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    with JudgeServer(latency=1.0) as server:
        monkeypatch.setenv("STEELYARD_BASE_URL", server.url)
        monkeypatch.setenv("STEELYARD_JUDGE", "openai:stub")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monitor = Monitor(metrics=FAITHFUL, sinks=[MemorySink()], concurrency=40)
        for number in range(40):
            monitor.submit(turn(str(number)))
        assert monitor.flush(60) == 0
        assert server.peak == 40
        monitor.close()
