"""Every claim of the worked examples points at its sentence of the answer and at the one that decides it."""

from __future__ import annotations

import asyncio

import pytest

from local_worked import ANSWERS, PASSAGES, WORKED, Worked, supported
from steelyard.metrics import Faithfulness, Hallucination, Metric
from steelyard.questions import Answer, Claims, Contradicted, Question, Request, Supported, Texts, YesNo
from steelyard.record import Context, Record
from steelyard.scores import Evidence, Score
from steelyard.testing import ScriptedJudge

TEXTS = tuple(PASSAGES.values())
CASES = [pytest.param(one, id=one.claim.rstrip(".")) for one in WORKED]


def judged(passage: str, metric: Metric) -> tuple[Record, Score]:
    """What a metric makes of a judge that names the deciding context by its number alone."""
    claims = {one.claim: one for one in WORKED if one.passage == passage}

    def think(question: Question, request: Request) -> Answer:
        if isinstance(question, Claims):
            return Texts(items=tuple(claims))
        assert isinstance(question, Supported | Contradicted)
        worked = claims[question.claim]
        named = (Evidence(context=TEXTS.index(passage)),) if worked.decided else ()
        return YesNo(value=worked.follows, evidence=named)

    record = Record(
        question="What do you know of it?",
        contexts=tuple(Context(text=text) for text in TEXTS),
        answer=ANSWERS[passage],
    )
    return record, asyncio.run(metric.score(record, judge=ScriptedJudge(think)))


@pytest.mark.parametrize("metric", [Faithfulness(), Hallucination()], ids=lambda metric: metric.key)
@pytest.mark.parametrize("worked", CASES)
def test_offsets_point_at_the_sentence_that_says_it_and_at_the_one_that_decides_it(
    worked: Worked, metric: Metric
) -> None:
    record, made = judged(worked.passage, metric)
    (verdict,) = (one for one in made.verdicts if one.about == worked.claim)
    assert verdict.span is not None
    assert worked.said in record.answer[slice(*verdict.span)]
    named = [TEXTS.index(worked.passage)] * bool(worked.decided)
    assert [piece.context for piece in verdict.evidence] == named
    for piece in verdict.evidence:
        assert worked.decided in worked.passage[piece.start : piece.end] == piece.text
        assert piece.located, "the judge named no sentence"


@pytest.mark.parametrize("worked", CASES)
def test_the_local_judge_points_at_the_sentence_that_decides_it(worked: Worked) -> None:
    verdict = supported(worked.claim, *TEXTS)
    for piece in verdict.evidence[:1]:
        assert piece.context is not None
        text = TEXTS[piece.context]
        assert text[piece.start : piece.end] == piece.text
        if worked.decided:
            assert (text, worked.decided in piece.text) == (worked.passage, True), piece.text
    assert verdict.evidence or not verdict.value
