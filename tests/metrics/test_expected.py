"""Where a judge gives probabilities, a value is the formula's expectation: held against all outcomes."""

from __future__ import annotations

import asyncio
import itertools
import math
import zlib
from collections.abc import Mapping

import pytest

from scripts import FixedEmbedder
from steelyard.metrics import (
    AnswerCorrectness,
    AnswerRelevancy,
    AspectCritique,
    ContextPrecision,
    ContextRecall,
    ContextRelevancy,
    ContextUtilization,
    CustomJudge,
    FactualCorrectness,
    Faithfulness,
    Hallucination,
    Metric,
    NoiseSensitivity,
    RagScore,
    ResponseGroundedness,
    RubricScore,
)
from steelyard.questions import Answer, Claims, Level, Question, Rating, Request, Texts, YesNo
from steelyard.record import Context, Record
from steelyard.scores import Evaluation, Score, evaluation_from_json, evaluation_to_json
from steelyard.testing import ScriptedJudge

RECORD = Record(
    question="Which letters?",
    answer="It is A. It is B.",
    reference="It is C. It is D.",
    contexts=(Context(text="One is here."), Context(text="Two is there. Three is far.")),
)
LISTS = {"answer": ("It is A", "It is B"), "reference": ("It is C", "It is D")}


def chance(question: Question) -> float:
    """Any probability, the same for the same question."""
    return 0.05 + zlib.crc32(repr(question).encode() + str(vars_of(question)).encode()) % 90 / 100


def vars_of(question: Question) -> list[object]:
    return [
        getattr(question, name, None)
        for name in ("claim", "text", "by", "of", "passage", "context", "sample")
    ]


def scored(metric: Metric, verdicts: Mapping[Question, bool] | None) -> tuple[Score, list[Question]]:
    """A metric under bare verdicts, or under the probabilities; and what was asked."""
    asked: list[Question] = []

    def say(question: Question, _: Request) -> Answer:
        if isinstance(question, Claims):
            return Texts(items=LISTS.get(question.of, ("One", "Two", "Three")))
        if question not in asked:
            asked.append(question)
        p = chance(question)
        return YesNo(value=p >= 0.5, probability=p) if verdicts is None else YesNo(value=verdicts[question])

    embedder = FixedEmbedder(lambda text: (1.0, float(len(text))))
    return asyncio.run(metric.score(RECORD, judge=ScriptedJudge(say), embedder=embedder)), asked


@pytest.mark.parametrize(
    "metric",
    [
        Faithfulness(),
        Faithfulness(variant="non_contradiction"),
        Faithfulness(claims="whole"),
        Hallucination(),
        Hallucination(over="contexts"),
        AnswerRelevancy(variant="statements"),
        ContextRecall(),
        ContextPrecision(),
        ContextUtilization(),
        ContextRelevancy(),
        FactualCorrectness(),
        FactualCorrectness(mode="precision"),
        FactualCorrectness(mode="recall", recall="counts"),
        FactualCorrectness(recall="counts", beta=2.0),
        AnswerCorrectness(),
        NoiseSensitivity(),
        NoiseSensitivity(mode="irrelevant"),
        AspectCritique(aspect="coherence", repeats=3),
    ],
    ids=lambda metric: f"{metric.key} {metric.options_text}",
)
def test_the_value_is_the_mean_over_all_outcomes(metric: Metric) -> None:
    soft, asked = scored(metric, None)
    assert len(asked) <= 12
    total = 0.0
    for outcome in itertools.product((False, True), repeat=len(asked)):
        verdicts = dict(zip(asked, outcome, strict=True))
        hard, _ = scored(metric, verdicts)
        assert hard.value is not None
        assert hard.hard_value is None
        weight = math.prod(chance(q) if yes else 1 - chance(q) for q, yes in verdicts.items())
        total += weight * hard.value
    assert soft.value == pytest.approx(total)
    expected, _ = scored(metric, {question: chance(question) >= 0.5 for question in asked})
    assert soft.hard_value == pytest.approx(expected.value)


def test_some_verdicts_without_a_probability_leave_the_formula_alone() -> None:
    def say(question: Question, _: Request) -> Answer:
        if isinstance(question, Claims):
            return Texts(items=LISTS["answer"])
        return YesNo(value=True, probability=0.6 if "A" in repr(vars_of(question)) else None)

    score = asyncio.run(Faithfulness().score(RECORD, judge=ScriptedJudge(say)))
    assert score.value == 1.0
    assert score.hard_value is None


@pytest.mark.parametrize(
    "metric",
    [ResponseGroundedness(), RubricScore(), CustomJudge(criterion="It is short.", scale=(2, 6))],
    ids=lambda metric: metric.key,
)
def test_a_rating_is_the_mean_of_its_levels(metric: Metric) -> None:
    def say(question: Question, _: Request) -> Answer:
        assert isinstance(question, Rating)
        low, *_between, high = (value for value, _ in question.levels)
        return Level(value=high, probabilities={low: 0.25, high: 0.75})

    score = asyncio.run(metric.score(RECORD, judge=ScriptedJudge(say)))
    assert score.value == pytest.approx(0.75)
    assert score.hard_value == 1.0


def test_a_score_of_parts_and_the_stored_form_have_both() -> None:
    parts = (Faithfulness(), ContextRecall())
    score, _ = scored(RagScore(parts=parts), None)
    soft = [scored(part, None)[0] for part in parts]
    values = [one.value or 0.0 for one in soft]
    assert score.value == pytest.approx(2 / sum(1 / value for value in values))
    hard = [one.hard_value or 0.0 for one in soft]
    assert score.hard_value == pytest.approx(2 / sum(1 / v for v in hard) if min(hard) else 0.0)
    kept = evaluation_from_json(evaluation_to_json(Evaluation(record_id="r", scores=(score,))))
    assert kept.scores[0].hard_value == pytest.approx(score.hard_value)


def test_the_standard_error_of_a_rating_is_that_of_its_probabilities() -> None:
    level = Level(value=4.0, probabilities={2.0: 0.5, 4.0: 0.5})
    metric = CustomJudge(criterion="It is short.", scale=(0, 4))
    record = Record(question="q", answer="a", contexts=(Context(text="c"),))
    found = asyncio.run(metric.score(record, judge=ScriptedJudge(lambda *_: level)))
    assert [found.value, found.standard_error] == pytest.approx([0.75, 0.25])
    level = Level(value=4.0, probabilities={0.0: 0.2, 4.0: 0.8})
    found = asyncio.run(metric.score(record, judge=ScriptedJudge(lambda *_: level)))
    assert [found.value, found.standard_error] == pytest.approx([0.8, 0.4])
