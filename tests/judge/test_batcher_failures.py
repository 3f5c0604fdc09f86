"""What a batcher does with replies that are missing, refused, failed or late."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from judge.fusing import RECORD, Asks, ask, deep, embeds, scored, shallow, three
from judge_server import Fault, JudgeServer, Received
from steelyard.questions import Embed, MetricRun, QuestionBatcher, Vector, require
from steelyard.record import Record
from steelyard.scores import Usage
from steelyard.testing import ScriptedJudge


def verdicts(*values: Any) -> str:
    """A reply to a few Supported questions."""
    return (
        "{"
        + ", ".join(f'"s{at}": {value}' for at, value in enumerate(values, start=1) if value is not None)
        + "}"
    )


YES = '{"reason": "", "context": 1, "verdict": true}'

NO = '{"reason": "", "context": 0, "verdict": false}'


@pytest.mark.parametrize(
    ("reply", "asked_again"),
    [
        (verdicts(YES, None, YES), ["B b."]),
        (verdicts(YES, '{"verdict": "perhaps"}', YES), ["B b."]),
        (verdicts(YES, '{"verdict": 1}', YES), ["B b."]),
        (verdicts(YES, YES.replace("1", "7"), YES), ["B b."]),
        (verdicts(YES, YES, YES)[:-30], ["C c."]),
        ("I would rather not say.", ["A a.", "B b.", "C c."]),
        ("", ["A a.", "B b.", "C c."]),
    ],
    ids=["missing", "no word for it", "number", "no such context", "truncated", "prose", "empty"],
)
def test_what_did_not_come_back_well_is_asked_once_more(reply: str, asked_again: list[str]) -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(content=reply))
        scores, usage = ask(server, [Asks("three", three)])
    assert scores["three"].value == 1.0
    assert [list(request.questions.values()) for request in server.received] == [
        ["A a.", "B b.", "C c."],
        asked_again,
    ]
    assert usage.reasked == len(asked_again)
    assert usage.requests == 2


@pytest.mark.parametrize(
    ("first", "second", "cause"),
    [
        (verdicts(YES, None, None), verdicts(YES), "missing_answer"),
        (
            verdicts(YES, '{"verdict": "perhaps"}', YES),
            verdicts('{"verdict": "perhaps"}'),
            "malformed_answer",
        ),
        ("no JSON", "still no JSON", "malformed_reply"),
        ("no JSON", verdicts(YES, NO, None), "missing_answer"),
    ],
)
def test_what_fails_twice_fails_by_name(first: str, second: str, cause: str) -> None:
    with JudgeServer() as server:
        server.faults += [Fault(content=first), Fault(content=second)]
        scores, _ = ask(server, [Asks("three", three)])
        assert len(server.received) == 2
    assert [scores["three"].status, scores["three"].cause, scores["three"].value] == ["failed", cause, None]


@pytest.mark.parametrize("count", [0, 2, 4])
def test_vectors_that_are_not_one_a_text_are_no_answer(count: int) -> None:
    class Short:
        name = "short"

        async def embed(self, texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], Usage]:
            return [[1.0, 0.0]] * count, Usage()

        async def aclose(self) -> None: ...

    def vectors(record: Record) -> MetricRun:
        found = require((yield [Embed(text=text) for text in ("a", "b", "c")]), Vector)
        return scored("vectors", float(len(found)))

    judge = ScriptedJudge(lambda question, request: None)
    batcher = QuestionBatcher(judge=judge, embedder=Short())
    (score,) = asyncio.run(batcher.run(RECORD, [Asks("vectors", vectors)]))
    assert (score.status, score.cause) == ("failed", "malformed_reply")
    assert f"{count} vectors for 3 texts" in (score.explanation or "")


def test_a_refusal_is_asked_again_and_then_named() -> None:
    def refuse(body: dict[str, Any]) -> None:
        body["choices"][0]["message"] = {"role": "assistant", "content": None, "refusal": "I will not."}

    with JudgeServer() as server:
        server.faults += [Fault(edit=refuse), Fault(edit=refuse)]
        scores, usage = ask(server, [Asks("three", three)])
    assert [scores["three"].status, scores["three"].cause] == ["failed", "refused"]
    assert [usage.requests, usage.reasked] == [2, 3]
    assert usage.prompt_tokens > 0


def test_answers_nobody_asked_for_are_counted_and_ignored() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(content=verdicts(YES, NO, YES, YES, YES)))
        scores, usage = ask(server, [Asks("three", three)])
    assert scores["three"].value == pytest.approx(2 / 3)
    assert usage.extra == 2


def test_one_metric_fails_without_the_others() -> None:
    with JudgeServer() as server:
        server.faults += [Fault(content='{"q1": {"claims": "not a list"}}')] * 2
        scores, _ = ask(server, [Asks("deep", deep), Asks("shallow", shallow)])
    assert scores["deep"].cause == "malformed_answer"
    assert scores["shallow"].value == 1.0


def test_fewer_questions_than_asked_for_are_enough() -> None:
    def two(request: Received) -> Any:
        asked_to_write = "different questions" in request.text
        return {"q1": {"questions": ["One?", "Two?"]} if asked_to_write else {"verdict": False}}

    with JudgeServer(two) as server:
        scores, _ = ask(server, [Asks("embeds", embeds)])
        assert len(server.prompts) == 2
    assert scores["embeds"].value == 2.0
