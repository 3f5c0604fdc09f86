"""Judges that answer with what is no answer: it fails by name, and never becomes a score."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from judge.fusing import Asks, scored, three
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
from steelyard.scores import Evaluation, Score, Usage, evaluation_from_json, evaluation_to_json
from steelyard.testing import ScriptedJudge

RECORD = Record(id="r1", question="Where?", contexts=(Context(text="In Ulm."),), answer="In Ulm, in 1879.")


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
        {"s1": True},
        Reply(answers={"s1": "yes", "s2": YesNo(value=True), "s3": YesNo(value=True)}),  # type: ignore[dict-item]
        Reply(answers={f"s{n}": YesNo(value="no") for n in (1, 2, 3)}),  # type: ignore[arg-type]
        Reply(answers={f"s{n}": YesNo(value=True, probability=float("nan")) for n in (1, 2, 3)}),
        Reply(answers={f"s{n}": YesNo(value=True, probability=2) for n in (1, 2, 3)}),
        Reply(answers={f"s{n}": Texts(items=("yes",)) for n in (1, 2, 3)}),
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
        (RATED, Level(value=1.0, probabilities={1.0: 1.5})),
        (RATED, Level(value=1.0, probabilities={1.0: float("nan")})),
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


class Exits(Odd):
    """A judge that leaves."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def answer(self, request: Request) -> Reply:
        raise self.error


LEAVING = [
    SystemExit("secret"),
    asyncio.CancelledError("secret"),
    GeneratorExit("secret"),
    ValueError("secret"),
]


@pytest.mark.parametrize("error", LEAVING, ids=lambda error: type(error).__name__)
def test_a_judge_that_leaves_fails_its_own_metrics_only(error: BaseException) -> None:
    async def main() -> list[Score]:
        leaving, staying = (
            QuestionBatcher(judge=judge).run(RECORD, [Asks("three", three)])
            for judge in (Exits(error), ScriptedJudge(lambda *_: YesNo(value=True)))
        )
        return [score for scores in await asyncio.gather(leaving, staying) for score in scores]

    left, stayed = asyncio.run(main())
    assert [left.status, left.cause] == ["failed", "judge_error"]
    assert type(error).__name__ in left.explanation
    assert "secret" not in left.explanation
    assert stayed.value == 1.0


@pytest.mark.parametrize("error", LEAVING, ids=lambda error: type(error).__name__)
def test_a_metric_that_leaves_fails_alone(error: BaseException) -> None:
    def leaving(record: Record) -> MetricRun:
        yield [Supported(claim="A a.")]
        raise error

    judge = ScriptedJudge(lambda *_: YesNo(value=True))
    batcher = QuestionBatcher(judge=judge)
    left, stayed = asyncio.run(batcher.run(RECORD, [Asks("leaving", leaving), Asks("three", three)]))
    assert [left.status, left.cause] == ["failed", "metric_error"]
    assert "secret" not in left.explanation
    assert stayed.value == 1.0


async def test_a_cancelled_evaluation_is_cancelled() -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    class Waits(Odd):
        async def answer(self, request: Request) -> Reply:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()
            raise AssertionError

    batcher = QuestionBatcher(judge=Waits(None))
    evaluation = asyncio.create_task(batcher.run(RECORD, [Asks("three", three)]))
    await asked.wait()
    evaluation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await evaluation
    assert left.is_set()


@pytest.mark.parametrize(
    "odd",
    [
        {"prompt_tokens": 2**70},
        {"prompt_tokens": float("nan")},
        {"completion_tokens": -5, "cost": float("inf")},
        {"seconds": float("nan"), "requests": None},
        {"cached_tokens": np.int64(3), "cost": np.float32(0.5)},
    ],
)
def test_odd_usage_is_counted_as_far_as_it_makes_sense(odd: dict[str, Any]) -> None:
    half: Any = np.float32(0.5)
    reply = Reply(
        answers={f"s{n}": YesNo(value=True, probability=half) for n in (1, 2, 3)},
        usage=Usage(**odd),
    )
    batcher = QuestionBatcher(judge=Odd(reply))
    (score,) = asyncio.run(batcher.run(RECORD, [Asks("three", three)]))
    assert score.value == 1.0
    counted = Evaluation(record_id="r1", scores=(score,), usage=batcher.usage)
    assert evaluation_from_json(evaluation_to_json(counted)).usage == batcher.usage
    assert 0 <= batcher.usage.prompt_tokens < 2**63
    assert all(type(value) in (int, float, type(None)) for value in asdict(batcher.usage).values())
