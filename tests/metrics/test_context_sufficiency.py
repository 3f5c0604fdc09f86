"""How much of a question the passages could answer, by judges that understand and by one that does not."""

from __future__ import annotations

import asyncio

import pytest

from steelyard.judge import LocalJudge
from steelyard.metrics import ContextSufficiency
from steelyard.questions import Answer, Level, Question, Request, Sufficient, Unanswered
from steelyard.record import Context, Record
from steelyard.scores import Score
from steelyard.testing import ScriptedJudge

FERRY = "The Aland ferry leaves Turku at nine and carries bicycles free of charge."


def scored(answer: Answer) -> Score:
    seen: list[Request] = []

    def answers(question: Question, request: Request) -> Answer:
        assert isinstance(question, Sufficient)
        seen.append(request)
        return answer

    record = Record(
        question="When does the ferry leave?",
        contexts=(Context(text=FERRY),),
        answer="At nine.",
        reference="9",
    )
    score = asyncio.run(ContextSufficiency().score(record, judge=ScriptedJudge(answers)))
    request = seen[0]
    assert request.view.question
    assert request.view.contexts
    assert request.view.answer is None, "the answer would give away what to look for"
    assert request.view.reference is None
    return score


@pytest.mark.parametrize(
    ("level", "value", "passed"), [(0.0, 0.0, False), (1.0, 0.0, False), (2.0, 0.5, False), (3.0, 1.0, True)]
)
def test_nothing_part_and_all(level: float, value: float, passed: bool) -> None:
    score = scored(Level(value=level, reason="The price is missing."))
    assert (score.value, score.passed) == (value, passed)
    assert score.explanation.endswith("; missing: The price is missing.")
    assert score.verdicts[0].reason == "The price is missing."


def test_the_value_is_an_expectation_if_the_judge_gives_probabilities() -> None:
    score = scored(Level(value=3.0, probabilities={1.0: 0.1, 2.0: 0.3, 3.0: 0.6}))
    assert score.value == pytest.approx(0.75)
    assert score.hard_value == 1.0


def test_a_judge_that_cannot_say_leaves_no_value() -> None:
    lacks = scored(Unanswered(cause="unsupported", detail="it cannot"))
    assert (lacks.status, lacks.cause) == ("not_applicable", "unsupported")
    failed = scored(Unanswered(cause="refused"))
    assert (failed.status, failed.cause, failed.value) == ("failed", "refused", None)


def test_the_local_judge_ranks_passages_by_what_they_have_of_the_question() -> None:
    question = "When does the Aland ferry leave Turku, and may I bring a bicycle?"
    texts = ["Sourdough needs flour, water and time.", "Aland is an archipelago near Turku.", FERRY]

    async def values() -> list[float | None]:
        judge = LocalJudge()
        records = [
            Record(question=question, contexts=(Context(text=text),), answer="At nine.") for text in texts
        ]
        return [(await ContextSufficiency().score(record, judge=judge)).value for record in records]

    elsewhere, near, there = asyncio.run(values())
    assert elsewhere == 0.0
    assert near is not None
    assert there is not None
    assert near < there
