"""Verdicts stand beside what they are about: a place in the answer, a sentence of the context."""

from __future__ import annotations

import asyncio

import pytest

from judge_server import JudgeServer, Received
from steelyard.judge import ChatJudge, LocalJudge
from steelyard.judge.overlap import locate, locate_all
from steelyard.metrics import (
    AnswerCorrectness,
    AnswerRelevancy,
    FactualCorrectness,
    Faithfulness,
    Hallucination,
    Metric,
    NoiseSensitivity,
)
from steelyard.questions import Answer, Claims, Question, Request, Texts, YesNo
from steelyard.record import Context, Record
from steelyard.scores import Evidence, Score, score_from_dict, score_to_dict
from steelyard.testing import ScriptedJudge

ANSWER = "Einstein was born in Ulm. He later moved to Bern, where he worked at the patent office. In 1921."
CLAIMS = {
    "Einstein was born in Ulm.": "Einstein was born in Ulm.",
    "Einstein worked at the patent office in Bern.": (
        "He later moved to Bern, where he worked at the patent office."
    ),
    "Einstein received the Nobel Prize in 1921.": "In 1921.",
    "Whales sing songs.": None,
}
CONTEXT = "Ulm lies on the Danube. Einstein was born in Ulm in 1879. Bern is the capital."
RECORD = Record(
    question="Who was Einstein?",
    contexts=(Context(text="Paris is in France."), Context(text=CONTEXT)),
    answer=ANSWER,
    reference="Einstein was born in Ulm.",
)


def think(question: Question, request: Request) -> Answer:
    if isinstance(question, Claims):
        return Texts(items=tuple(CLAIMS) if question.of == "answer" else ("Einstein was born in Ulm.",))
    return YesNo(value=True, evidence=(Evidence(context=1),))


def score(metric: Metric) -> Score:
    return asyncio.run(metric.score(RECORD, judge=ScriptedJudge(think)))


@pytest.mark.parametrize(
    "metric",
    [
        Faithfulness(),
        Faithfulness(variant="non_contradiction"),
        Hallucination(),
        AnswerRelevancy(variant="statements"),
        FactualCorrectness(),
        AnswerCorrectness(weights=(1, 0)),
        NoiseSensitivity(),
    ],
    ids=lambda metric: metric.key,
)
def test_a_verdict_about_a_claim_says_which_sentence_of_the_answer_carries_it(metric: Metric) -> None:
    made = score(metric).verdicts[: len(CLAIMS)]
    assert {one.about: one.span and ANSWER[slice(*one.span)] for one in made} == CLAIMS


def test_claims_of_the_reference_have_no_place_in_the_answer() -> None:
    assert [one.span for one in score(FactualCorrectness()).verdicts[len(CLAIMS) :]] == [None]


def test_a_sentence_stands_where_it_stands_also_when_it_stands_twice() -> None:
    answer = "It is big. It is old. It is big."
    judge = ScriptedJudge(lambda *_: YesNo(value=True))
    record = Record(question="?", contexts=RECORD.contexts, answer=answer)
    made = asyncio.run(Faithfulness(claims="sentences").score(record, judge=judge))
    assert [one.span for one in made.verdicts] == [(0, 10), (11, 21), (22, 32)]


def test_a_context_that_a_chat_judge_names_is_narrowed_to_a_sentence() -> None:
    def think_of(got: Received) -> object:
        claims = {"claims": ["Einstein was born in Ulm.", "Whales sing songs."]}
        first = any(key.startswith("q1") for key in got.questions)
        verdict = {"reason": "r", "context": 2, "verdict": True}
        return {"q1": claims} if first else {"s1": verdict, "s2": verdict}

    async def main(url: str) -> Score:
        judge = ChatJudge("m", base_url=url)
        try:
            return await Faithfulness().score(RECORD, judge=judge)
        finally:
            await judge.aclose()

    with JudgeServer(think_of) as server:
        made = asyncio.run(main(server.url))
    sentence = "Einstein was born in Ulm in 1879."
    start = CONTEXT.index(sentence)
    told, vague = made.verdicts
    assert told.evidence == (
        Evidence(context=1, start=start, end=start + len(sentence), text=sentence, located=True),
    )
    assert vague.evidence == (Evidence(context=1),)
    assert score_from_dict(score_to_dict(made)) == made


def test_no_place_in_a_passage_that_was_expected_is_told_as_one_of_what_was_retrieved() -> None:
    expected = RECORD.replace(reference_contexts=(Context(text="Rome."), Context(text="Madrid.")))
    for record, located in ((RECORD, {True}), (expected, {False})):
        made = asyncio.run(Hallucination().score(record, judge=ScriptedJudge(think)))
        first = made.verdicts[0].evidence
        assert first and {piece.located for piece in first} == located


def test_what_the_local_judge_points_at_is_its_own() -> None:
    made = asyncio.run(Faithfulness(claims="sentences").score(RECORD, judge=LocalJudge()))
    pieces = [piece for one in made.verdicts for piece in one.evidence]
    assert pieces
    assert not any(piece.located for piece in pieces)


def test_a_tie_between_different_sentences_is_not_decided() -> None:
    assert locate("Ulm grew.", "Ulm grew there. There Ulm grew!") is None
    assert locate("Ulm grew.", "Ulm grew. Ulm grew.") == (0, 9)
    assert locate("Anything.", "") is None
    assert locate("", "Ulm grew.") is None
    assert locate_all([], "Ulm grew.") == []
