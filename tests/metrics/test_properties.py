"""What holds for every formula: bounds, order where it must not matter, monotonicity, and no NaN ever."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import FixedEmbedder, Script
from steelyard.metrics import (
    ALL,
    AnswerCorrectness,
    AnswerRelevancy,
    ContextPrecision,
    ContextRecall,
    ContextRelevancy,
    FactualCorrectness,
    Faithfulness,
    Metric,
    score_record,
)
from steelyard.metrics._formulas import average_precision, cosine, f_beta, f_score, harmonic_mean, share_error
from steelyard.questions import Answer, Fuse, Question, Relevant, Request, Texts, YesNo
from steelyard.record import Context, Record
from steelyard.scores import Score
from steelyard.testing import ScriptedJudge

marks = st.lists(st.booleans(), min_size=1, max_size=12)
unit = st.floats(0, 1)
counts = st.integers(0, 50)

CLAIMS = ("a", "b", "c", "d", "e")
RECORD = Record(
    question="Which letters?",
    answer="A. B. C. D. E.",
    reference="A. B. C.",
    contexts=tuple(Context(text=f"passage {letter}.", id=letter) for letter in CLAIMS),
    reference_contexts=(Context(text="passage a.", id="a"),),
)
scripts = st.builds(
    Script,
    answer_claims=st.lists(st.sampled_from(CLAIMS), max_size=5).map(tuple),
    reference_claims=st.lists(st.sampled_from(CLAIMS), max_size=5).map(tuple),
    true=st.frozensets(st.sampled_from((*CLAIMS, *(f"passage {c}." for c in CLAIMS)))),
    useful=st.frozensets(st.integers(0, 4)),
    entities=st.fixed_dictionaries(
        {"reference": st.just(("x", "y")), "contexts": st.sampled_from([(), ("x",)])}
    ),
    questions=st.just(("p?", "q?", "r?")),
    evasive=st.booleans(),
    ratings=st.fixed_dictionaries({n: st.sampled_from([None, 0.0, 2.0]) for n in (1, 2)} | {0: st.just(1.0)}),
    by_passage=st.frozensets(st.tuples(st.sampled_from(CLAIMS), st.integers(0, 4))),
)
vectors = st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))


def score(metric: Metric, script: Script, vector: tuple[float, float] = (1.0, 0.0)) -> Score:
    embedder = FixedEmbedder(lambda text: vector if "?" in text else (1.0, 1.0))
    return asyncio.run(metric.score(RECORD, judge=script.judge(), embedder=embedder))


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.key)
@given(script=scripts, vector=vectors)
def test_every_value_is_in_range_and_every_lack_has_a_cause(
    metric: type[Metric], script: Script, vector: tuple[float, float]
) -> None:
    result = score(metric(), script, vector)
    low = -1.0 if metric.key == "answer_relevancy" else 0.0
    if result.status == "scored":
        assert result.value is not None
        assert low <= result.value <= 1.0
        assert not math.isnan(result.value)
        assert result.cause is None
    else:
        assert result.value is None
        # Dividing by no claims, say, is a mistake of the metric and no lack.
        assert result.cause and result.cause != "metric_error", result.explanation
    assert result.explanation


@pytest.mark.parametrize(
    "metric", [Faithfulness(), ContextRecall(), FactualCorrectness(), AnswerCorrectness()]
)
@given(script=scripts, data=st.data())
def test_the_order_of_claims_does_not_matter(metric: Metric, script: Script, data: st.DataObject) -> None:
    shuffled = replace(
        script,
        answer_claims=tuple(data.draw(st.permutations(script.answer_claims))),
        reference_claims=tuple(data.draw(st.permutations(script.reference_claims))),
    )
    assert score(metric, script).value == score(metric, shuffled).value


@given(script=scripts)
def test_one_more_supported_claim_never_hurts(script: Script) -> None:
    before = score(Faithfulness(), script).value
    after = score(Faithfulness(), replace(script, true=script.true | {"a"})).value
    assert before is None or (after is not None and after >= before)


@given(useful=marks)
def test_a_useful_context_moved_up_never_hurts_precision(useful: list[bool]) -> None:
    for rank in range(1, len(useful)):
        if useful[rank] and not useful[rank - 1]:
            raised = [*useful[: rank - 1], True, False, *useful[rank + 1 :]]
            assert average_precision(raised) > average_precision(useful)


def test_precision_sees_the_order_of_contexts() -> None:
    values = [score(ContextPrecision(), Script(useful=frozenset({rank}))).value for rank in range(5)]
    assert values == [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5]


@given(tp=counts, fp=counts, fn=counts, beta=st.floats(0.1, 10))
def test_f_beta_from_counts_is_f_beta_from_precision_and_recall(
    tp: int, fp: int, fn: int, beta: float
) -> None:
    value = f_beta(tp, fp, fn, beta=beta)
    if tp == fp == fn == 0:
        assert value is None
        return
    precision = tp / (tp + fp) if tp + fp else 0.0
    recall = tp / (tp + fn) if tp + fn else 0.0
    assert value == pytest.approx(f_score(precision, recall, beta=beta))
    if beta == 1:
        assert value == pytest.approx(tp / (tp + 0.5 * (fp + fn)))


@given(values=st.lists(unit, min_size=1, max_size=6))
def test_the_harmonic_mean_lies_between_0_and_the_least_arithmetic_mean(values: list[float]) -> None:
    value = harmonic_mean(values)
    assert 0 <= value <= sum(values) / len(values) + 1e-9
    if min(values) > 0:
        assert value >= min(values) - 1e-12


finite = st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=2)


def test_cosine_has_no_scale() -> None:
    for scale in (1e-300, 1.0, 1e200):
        assert cosine([scale, 0.0], [-scale, 0.0]) == -1.0
        assert cosine([scale, scale], [scale, 0.0]) == pytest.approx(0.5**0.5)


@given(one=finite, other=finite)
def test_cosine_is_bounded_and_symmetric(one: list[float], other: list[float]) -> None:
    value = cosine(one, other)
    assert -1 <= value <= 1
    assert value == cosine(other, one)


@given(probabilities=st.lists(unit, min_size=1, max_size=30))
def test_certain_verdicts_have_no_error_and_uncertain_ones_at_most_half(probabilities: list[float]) -> None:
    error = share_error(probabilities)
    assert error is not None
    assert 0 <= error <= 0.5 / math.sqrt(len(probabilities)) + 1e-12
    assert share_error([round(p) for p in probabilities]) == 0
    assert share_error([*probabilities, None]) is None


@given(times=st.lists(st.tuples(st.integers(1, 4), unit), min_size=1, max_size=6))
def test_a_sentence_that_comes_several_times_weighs_so_often_in_the_error(
    times: list[tuple[int, float]],
) -> None:
    texts = [f"Sentence {chr(97 + place)} stands here." for place in range(len(times))]
    chances = {text: chance for text, (_, chance) in zip(texts, times, strict=True)}

    def answer(question: Question, _: Request) -> Answer:
        assert isinstance(question, Relevant)
        return YesNo(value=chances[question.text] >= 0.5, probability=chances[question.text])

    passages = [
        Context(text=text) for text, (count, _) in zip(texts, times, strict=True) for _ in range(count)
    ]
    record = Record(question="What stands here?", contexts=tuple(passages))
    made = asyncio.run(ContextRelevancy().score(record, judge=ScriptedJudge(answer)))
    assert made.value == pytest.approx(sum(c * p for c, p in times) / len(passages))
    error = math.sqrt(sum(c * c * p * (1 - p) for c, p in times)) / len(passages)
    assert made.standard_error == pytest.approx(error, abs=1e-9)


def test_ranks_are_compared_pairwise() -> None:
    values = [average_precision([True] * hits + [False] * (5 - hits)) for hits in range(1, 6)]
    assert all(later >= earlier for earlier, later in pairwise(values))


@pytest.mark.parametrize("fuse", ["view", "off", "record"])
def test_the_id_of_a_result_changes_with_its_company_unless_each_question_goes_alone(fuse: Fuse) -> None:
    def ids(*metrics: Metric) -> dict[str, str]:
        judge, embedder = Script(answer_claims=("a",)).judge(), FixedEmbedder(lambda _: (1.0,))
        made = asyncio.run(score_record(RECORD, [*metrics], judge=judge, embedder=embedder, fuse=fuse))
        return {one.metric: one.id for one in made.scores}

    alone, beside = ids(Faithfulness()), ids(Faithfulness(), ContextRecall())
    assert (alone["faithfulness"] == beside["faithfulness"]) == (fuse == "off")


def test_a_judge_that_writes_more_questions_than_asked_changes_no_mean() -> None:
    written = ("p?", "q?", "r?", "far?", "away?")

    def answers(question: Question, request: Request) -> Answer:
        return Texts(items=written) if question.extracts else YesNo(value=False)

    embedder = FixedEmbedder(lambda text: (0.0, 1.0) if text in written[3:] else (1.0, 0.0))
    metric = AnswerRelevancy(count=3, noncommittal="none")
    made = asyncio.run(metric.score(RECORD, judge=ScriptedJudge(answers), embedder=embedder))
    assert (made.value, len(made.verdicts)) == (1.0, 3)
