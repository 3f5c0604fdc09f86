"""An alarm inside an application with canaries says whether it was the judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from alarms.alarm_parts import scored
from online.helpers import FAITHFUL
from online.test_canaries import Knowing, turn
from steelyard.alarms import Alarm, AlarmSink
from steelyard.online import Canaries, CanaryReading, Monitor
from steelyard.testing import ScriptedJudge
from waiting import until


def wait_for(monitor: Monitor, true: Callable[[CanaryReading], bool]) -> None:
    until(lambda: (found := monitor.stats().canaries) is not None and true(found))


@pytest.mark.parametrize("judge_changes", [True, False])
def test_an_alarm_says_whether_it_was_the_judge(
    judge_changes: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = Knowing()
    sink = AlarmSink([Alarm(metric="faithfulness", below=0.8)], file=str(tmp_path / "alarms.db"))
    canaries = Canaries(share=0.0001, probes=20)
    monitor = Monitor(metrics=FAITHFUL, judge=ScriptedJudge(script), sinks=[sink], canaries=canaries)
    monitor.submit(turn(0))
    wait_for(monitor, lambda found: found.state == "watching")
    if judge_changes:
        script.flipped = 1.0
        monitor.ask_canaries(20)
        wait_for(monitor, lambda found: found.state == "changed")
    events = sink.watcher.take([scored(number, 0.0) for number in range(100)])
    (event,) = [event for event in events if event.kind == "fell"]
    if judge_changes:
        assert "the judge has changed" in event.canaries
    else:
        assert "are being asked whether it was the judge" in event.canaries
        wait_for(monitor, lambda found: found.checked == 100 and not found.waiting)
        until(lambda: "it was not the judge" in caplog.text)
    assert event.canaries in event.text and event.to_dict()["canaries"] == event.canaries
    monitor.close()
