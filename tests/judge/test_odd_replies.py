"""Judges that answer with what is no answer: it fails by name, and never becomes a score."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from steelyard.questions import (
    Answer,
    Capabilities,
    Claims,
    Level,
    MetricRun,
    Noncommittal,
    Question,
    QuestionBatcher,
    Rating,
    Reply,
    Request,
    Supported,
    Texts,
    YesNo,
    require,
)
from steelyard.record import Context, Record
from steelyard.scores import Score
from steelyard.testing import ScriptedJudge

RECORD = Record(id="r1", question="Where?", contexts=(Context(text="In Ulm."),), answer="In Ulm, in 1879.")


@dataclass
class Asks:
    """A metric made of a function."""

    name: str
    rounds: Callable[[Record], MetricRun]

    def ask(self, record: Record) -> MetricRun:
        return self.rounds(record)


def scored(name: str, value: float) -> Score:
    return Score(metric=name, status="scored", value=value)


def three(record: Record) -> MetricRun:
    answers = require((yield [Supported(claim=claim) for claim in ("A a.", "B b.", "C c.")]), YesNo)
    return scored("three", sum(answer.value for answer in answers) / 3)


class Odd:
    """A judge that returns what no judge may return."""

    name = "odd"
    prompt_version = "0"
    capabilities = Capabilities(kinds=frozenset({Supported}))

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    async def answer(self, request: Request) -> Reply:
        return self.reply  # type: ignore[no-any-return]

    async def aclose(self) -> None: ...


@pytest.mark.parametrize(
    "reply",
    [
        None,
        {"q1": True},
        Reply(answers={"q1": "yes", "q2": YesNo(value=True), "q3": YesNo(value=True)}),  # type: ignore[dict-item]
        Reply(answers={f"q{n}": YesNo(value="no") for n in (1, 2, 3)}),  # type: ignore[arg-type]
        Reply(answers={f"q{n}": YesNo(value=True, probability=float("nan")) for n in (1, 2, 3)}),
        Reply(answers={f"q{n}": YesNo(value=True, probability=2) for n in (1, 2, 3)}),
        Reply(answers={f"q{n}": Texts(items=("yes",)) for n in (1, 2, 3)}),
    ],
)
def test_what_is_no_answer_never_becomes_a_score(reply: Any) -> None:
    (score,) = asyncio.run(QuestionBatcher(judge=Odd(reply)).run(RECORD, [Asks("three", three)]))
    assert score.status == "failed"
    assert score.value is None


LEVELS = ((0.0, "no"), (1.0, "yes"))
RATED = Rating(instruction="How good?", levels=LEVELS, needs=frozenset({"answer"}))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (Claims(), Texts(items="one claim")),  # type: ignore[arg-type]
        (RATED, Level(value=[1.0])),  # type: ignore[arg-type]
        (RATED, Level(value=1.0, probabilities=None)),  # type: ignore[arg-type]
        (RATED, Level(value=1.0, probabilities={0.5: 1.0})),
    ],
)
def test_an_answer_of_the_wrong_shape_fails_alone(question: Question, answer: Answer) -> None:
    def script(asked: Question, request: Request) -> Answer:
        return answer if asked == question else YesNo(value=True)

    def asks(record: Record) -> MetricRun:
        found = yield [question, Noncommittal()]
        assert isinstance(found[1], YesNo)
        require(found[:1], question.form)
        return scored("odd", 1.0)

    (score,) = asyncio.run(QuestionBatcher(judge=ScriptedJudge(script)).run(RECORD, [Asks("odd", asks)]))
    assert [score.status, score.cause] == ["failed", "malformed_answer"]
