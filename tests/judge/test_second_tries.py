"""What did not come back well is asked once more, and then fails by name."""

from __future__ import annotations

from typing import Any

import pytest

from judge.fusing import Asks, ask, three
from judge_server import Fault, JudgeServer


def verdicts(*values: Any) -> str:
    """A reply to a few Supported questions."""
    said = [f'"s{at}": {value}' for at, value in enumerate(values, start=1) if value is not None]
    return f"{{{', '.join(said)}}}"


YES = '{"reason": "", "context": 1, "verdict": true}'
PERHAPS = '{"verdict": "perhaps"}'
NO = '{"reason": "", "context": 0, "verdict": false}'


@pytest.mark.parametrize(
    ("reply", "asked_again"),
    [
        (verdicts(YES, None, YES), ["B b."]),
        (verdicts(YES, PERHAPS, YES), ["B b."]),
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
        (verdicts(YES, PERHAPS, YES), verdicts(PERHAPS), "malformed_answer"),
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


def test_a_second_try_is_asked_otherwise() -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(content="no JSON"))
        scores, _ = ask(server, [Asks("three", three)])
    first, second = server.received
    assert scores["three"].value == 1.0
    assert first.body["temperature"] < second.body["temperature"]
    assert "second time" in second.text
    assert "second time" not in first.text


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


def test_requests_that_failed_are_on_the_bill() -> None:
    with JudgeServer() as server:
        server.faults.extend([Fault(status=500)] * 100)
        scores, usage = ask(server, [Asks("three", three)])
        assert scores["three"].status == "failed"
        assert usage.requests == len(server.received) > 0
