"""What passes: bars that values mean, held against verdicts if they ask for all."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.metrics import AnswerRelevancy, ContextRelevancy, Faithfulness, Metric
from steelyard.questions import Answer, Question, Request, YesNo
from steelyard.record import Context, Record
from steelyard.testing import ScriptedJudge

RECORD = Record(
    question="When was it built?",
    answer="It was built in 1889. It stands in Paris.",
    contexts=(Context(text="The tower in Paris was built in 1889."),),
)


@pytest.mark.parametrize(("unsupported", "passed"), [("", True), ("Paris", False)])
def test_faithful_is_what_has_every_claim_supported(unsupported: str, passed: bool) -> None:
    def answer(question: Question, _: Request) -> Answer:
        good = not unsupported or unsupported not in getattr(question, "claim", "")
        return YesNo(value=good, probability=0.9 if good else 0.1)

    metric = Faithfulness(claims="sentences")
    score = asyncio.run(metric.score(RECORD, judge=ScriptedJudge(answer)))
    assert (score.passed, score.threshold) == (passed, 1.0)
    assert score.value is not None and score.value < 1.0


@pytest.mark.parametrize("metric", [AnswerRelevancy(), ContextRelevancy()])
def test_what_has_no_natural_bar_has_no_verdict(metric: Metric) -> None:
    assert metric.threshold is None


def test_a_bar_of_ones_own_is_held_against_the_value() -> None:
    judge = ScriptedJudge(lambda question, _: YesNo(value=True, probability=0.9))
    metric = Faithfulness(claims="sentences", threshold=0.95)
    score = asyncio.run(metric.score(RECORD, judge=judge))
    assert score.passed is False
