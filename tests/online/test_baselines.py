"""`threshold="baseline"`: a bar out of a team's own earlier scores."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from online.helpers import finish, kind_judge, turn
from steelyard.errors import ConfigurationError
from steelyard.metrics import Faithfulness, Metric
from steelyard.online import Monitor
from steelyard.questions import MetricRun, Part
from steelyard.record import Record
from steelyard.scores import Direction, Evaluation, Score
from steelyard.sinks import SQLiteSink
from steelyard.testing import MemorySink
from waiting import until

DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Said(Metric):
    """The number that the answer is."""

    key = "said"
    needs: ClassVar[tuple[Part, ...]] = ("answer",)

    def questions(self, record: Record) -> MetricRun:
        yield []
        return self.scored(float(record.answer))


@dataclass(frozen=True, kw_only=True)
class SaidTooMuch(Said):
    """The same, of which less is better."""

    key = "said_too_much"
    direction: ClassVar[Direction] = "lower"


def judged(metric: Metric, answers: Sequence[str], path: Path) -> dict[str, Score]:
    sink = MemorySink()
    monitor = Monitor(metrics=[metric], judge=kind_judge(), sinks=[SQLiteSink(path), sink])
    with closing(monitor):
        for answer in answers:
            finish(monitor, [turn(answer, answer=answer)])
    return {one.record_id: one.scores[0] for one in sink.evaluations}


def earlier(
    metric: Metric,
    path: Path,
    *,
    days: int,
    bad: range = range(0),
    a_day: int = 30,
    otherwise: Callable[[Score], Score] = lambda like: like,
) -> None:
    """Scores made as the Monitor's are, evenly between .5 and 1 where one in four from .75 on was picked.

    On bad days they are 0.
    """
    (like,) = judged(metric, ["0.7"], path).values()
    like, draw = otherwise(like), random.Random(1)
    values = {(day, n): draw.uniform(0.5, 1.0) for day in range(days) for n in range(a_day)}
    evaluations = [
        Evaluation(
            record_id=f"{day}-{number}",
            scores=(
                replace(
                    like,
                    id=f"{day}-{number}",
                    value=0.0 if day in bad else value,
                    inclusion_probability=1.0 if day in bad or value < 0.75 else 0.25,
                ),
            ),
            happened_at=time.time() - (day + 1) * DAY,
            evaluated_at=time.time(),
        )
        for (day, number), value in values.items()
    ]
    asyncio.run(SQLiteSink(path).write(evaluations))


@pytest.mark.parametrize("bad", [range(0), range(7, 14)], ids=["quiet", "after a bad week"])
def test_turns_pass_if_they_are_no_worse_than_95_in_100_before(tmp_path: Path, bad: range) -> None:
    metric = Said(threshold="baseline")
    earlier(metric, tmp_path / "s.db", days=40, bad=bad)
    found = judged(metric, ["0.45", "0.6"], tmp_path / "s.db")
    bar = found["0.6"].threshold
    # Of five turns one is below .75, and a quarter of those is the worst twentieth.
    assert bar == pytest.approx(0.5625, abs=0.02)
    assert {name: (score.passed, score.label) for name, score in found.items()} == {
        "0.45": (False, "fail"),
        "0.6": (True, "pass"),
    }


def test_of_what_should_be_low_the_highest_five_in_100_fail(tmp_path: Path) -> None:
    metric = SaidTooMuch(threshold="baseline")
    earlier(metric, tmp_path / "s.db", days=20)
    found = judged(metric, ["0.9", "0.999"], tmp_path / "s.db")
    assert [score.passed for score in found.values()] == [True, False]


@pytest.mark.parametrize(("days", "a_day"), [(5, 100), (20, 5)], ids=["days", "scores"])
def test_too_little_makes_no_bar(tmp_path: Path, days: int, a_day: int) -> None:
    metric = Said(threshold="baseline")
    earlier(metric, tmp_path / "s.db", days=days, a_day=a_day)
    (score,) = judged(metric, ["0.1"], tmp_path / "s.db").values()
    assert (score.value, score.threshold, score.passed, score.label) == (0.1, None, None, None)


def made_by(**changes: Any) -> Callable[[Score], Score]:
    def changed(like: Score) -> Score:
        assert like.provenance is not None
        return replace(like, provenance=replace(like.provenance, **changes))

    return changed


@pytest.mark.parametrize(
    "otherwise",
    [
        lambda like: replace(like, metric="said_too_much"),
        lambda like: replace(like, options="by=hand"),
        lambda like: replace(like, status="failed"),
        made_by(judge="another"),
        made_by(prompt_version="of another wording"),
        made_by(metric_version="99"),
    ],
    ids=["metric", "options", "no value", "judge", "wording", "definition"],
)
def test_scores_that_were_made_otherwise_make_no_bar(
    tmp_path: Path, otherwise: Callable[[Score], Score]
) -> None:
    metric = Said(threshold="baseline")
    earlier(metric, tmp_path / "s.db", days=20, otherwise=otherwise)
    (score,) = judged(metric, ["0.1"], tmp_path / "s.db").values()
    assert score.threshold is None


def test_earlier_scores_are_read_once_and_nobody_waits_for_them() -> None:
    class Slow(MemorySink):
        def baseline(self, score: Score, *, now: float) -> float:
            reads.append(score)
            free.wait(10)
            return 0.5

    reads: list[Score] = []
    free, sink = threading.Event(), Slow()
    monitor = Monitor(metrics=[Said(threshold="baseline")], judge=kind_judge(), sinks=[sink])
    for number in range(5):
        monitor.submit(turn(str(number), answer="0.7"))
    until(lambda: len(sink.evaluations) == 4)
    free.set()
    assert monitor.flush(60) == 0
    monitor.close()
    assert len(reads) == 1 and [one.scores[0].threshold for one in sink.evaluations] == [*(None,) * 4, 0.5]


def test_a_bar_is_a_number_or_the_word() -> None:
    with pytest.raises(ConfigurationError, match="threshold='mean' is not a number, 'baseline' or None"):
        Faithfulness(threshold="mean")  # type: ignore[arg-type]
