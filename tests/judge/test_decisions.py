"""DecisionsJudge on the wire: typed questions, probabilities, refusals by name."""

from __future__ import annotations

from typing import Any

import pytest

from judge.asked import answered as ask
from judge.asked import closing
from judge_server import Fault, JudgeServer
from steelyard.errors import ConfigurationError, JudgeUnavailable, MalformedReply
from steelyard.judge import ChatJudge, DecisionsJudge
from steelyard.metrics import ContextRelevance, Faithfulness, ResponseGroundedness
from steelyard.questions import (
    Choose,
    ChosenOption,
    Claims,
    Contradicted,
    Entities,
    GeneratedQuestions,
    Level,
    Noncommittal,
    Predicate,
    Question,
    QuestionBatcher,
    Rating,
    Relevant,
    Request,
    Same,
    Supported,
    Texts,
    Unanswered,
    Useful,
    View,
    YesNo,
)
from steelyard.record import Context, Record

NEEDS = frozenset[Any]({"answer"})
VIEW = View(question="Where?", contexts=(Context(text="In Ulm."),), answer="In Ulm. In 1879.")
RATING = Rating(instruction="How good?", levels=((0, "bad"), (2, "fair"), (4, "good")), needs=NEEDS)


def request(*questions: Question) -> Request:
    return Request(view=VIEW, questions={f"q{n}": q for n, q in enumerate(questions, start=1)})


TWO = request(Supported(claim="A."), Supported(claim="B."))


def test_every_kind_of_decision() -> None:
    asked = request(
        Supported(claim="A."),
        Contradicted(claim="B."),
        Useful(context=0),
        Relevant(text="C."),
        Same(claim="D.", among="answer", of="reference"),
        Noncommittal(),
        Predicate(criterion="It is short.", needs=NEEDS),
        RATING,
        Choose(instruction="Which?", options=("red", "blue"), needs=NEEDS),
    )
    with JudgeServer() as server:
        reply = ask(DecisionsJudge(base_url=server.url), asked)
    (got,) = server.received
    assert got.path == "/v1/decisions"
    assert got.body["model"] == "gpt-6-luna"
    assert [q["type"] for q in got.body["questions"]] == ["predicate"] * 7 + ["score", "choice"]
    assert reply.answers["q1"] == YesNo(value=True, probability=0.9)
    assert reply.answers["q8"] == Level(value=4, probabilities={0: 0, 2: 0, 4: 1})
    assert reply.answers["q9"] == ChosenOption(value="red", probabilities={"red": 1, "blue": 0})
    assert reply.usage.requests == 1
    assert reply.usage.prompt_tokens > reply.usage.cached_tokens > 0


def test_a_yes_is_at_least_as_likely_as_not() -> None:
    def decide(question: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        return {"type": "predicate", "probability": 0.5 if "A." in question["instructions"] else 0.49}

    with JudgeServer(decide=decide) as server:
        answers = ask(DecisionsJudge(base_url=server.url), TWO).answers
    assert answers == {"q1": YesNo(value=True, probability=0.5), "q2": YesNo(value=False, probability=0.49)}


def test_of_equally_likely_levels_the_lowest() -> None:
    def decide(question: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        weights = [{"label": label, "value": n, "probability": 0.4} for n, label in enumerate(("4", "2"))]
        return {"type": "score", "score": 3.0, "confidence": 0.4, "probabilities": weights}

    with JudgeServer(decide=decide) as server:
        (answer,) = ask(DecisionsJudge(base_url=server.url), request(RATING)).answers.values()
    assert isinstance(answer, Level)
    assert answer.value == 2


def test_a_refusal_is_one_question_s_own() -> None:
    def decide(question: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        refused = "A." in question["instructions"]
        return {"type": "refusal"} if refused else {"type": "predicate", "probability": 1}

    with JudgeServer(decide=decide) as server:
        answers = ask(DecisionsJudge(base_url=server.url), TWO).answers
    assert isinstance(answers["q1"], Unanswered)
    assert answers["q1"].cause == "refused"
    assert answers["q2"] == YesNo(value=True, probability=1.0)


@pytest.mark.parametrize(
    ("edit", "q1", "q2"),
    [
        (lambda answers: answers.reverse(), True, True),
        (lambda answers: answers.pop(), True, None),
        (lambda answers: [a.pop("name") for a in answers], True, True),
        (lambda answers: [answers.pop()] and [a.pop("name") for a in answers], None, None),
        (lambda answers: answers.append({**answers[0], "probability": 0.1}), None, True),
        (lambda answers: answers[0].update(name="q7"), None, True),
        (lambda answers: answers[0].update(type="score"), None, True),
        (lambda answers: answers[0].update(probability="high"), None, True),
        (lambda answers: answers.insert(0, "q1"), True, True),
    ],
    ids=[
        "reversed",
        "one missing",
        "no names",
        "no names and one missing",
        "one twice",
        "wrong name",
        "wrong type",
        "no number",
        "no object",
    ],
)
def test_answers_are_matched_by_name(edit: Any, q1: bool | None, q2: bool | None) -> None:
    with JudgeServer() as server:
        server.faults.append(Fault(edit=lambda body: edit(body["answers"])))
        answers = ask(DecisionsJudge(base_url=server.url), TWO).answers
    found = [getattr(answers.get(key), "value", None) for key in ("q1", "q2")]
    assert found == [q1, q2]


@pytest.mark.parametrize("probability", [1.2, -0.1, float("nan"), float("inf")])
def test_a_probability_outside_of_its_range_fails_by_name(probability: float) -> None:
    def decide(question: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        return {"type": "predicate", "probability": probability}

    record = Record(contexts=(Context(text="c"),), answer="An answer.")
    with JudgeServer(decide=decide) as server:
        judge = DecisionsJudge(base_url=server.url)
        score = closing(judge, Faithfulness().score(record, judge=judge))
    assert [score.status, score.cause] == ["failed", "malformed_answer"]


def test_without_an_extractor_claims_are_sentences() -> None:
    with JudgeServer() as server:
        judge = DecisionsJudge(base_url=server.url)
        reply = ask(judge, request(Claims()))
        assert server.received == []
    assert reply.answers["q1"] == Texts(items=("In Ulm.", "In 1879."))
    assert reply.usage.requests == 0
    assert not judge.capabilities.kinds & {Entities, GeneratedQuestions}
    assert judge.prompt_version.endswith("+sentences")


def test_an_extractor_extracts() -> None:
    with JudgeServer() as server:
        judge = DecisionsJudge(base_url=server.url, extractor=ChatJudge("m", base_url=server.url))
        reply = ask(judge, request(Claims(), Supported(claim="A.")))
    assert [r.path for r in server.received] == ["/v1/chat/completions", "/v1/decisions"]
    assert reply.answers["q1"] == Texts(items=("One.", "Two.", "Three."))
    assert reply.answers["q2"] == YesNo(value=True, probability=0.9)
    assert reply.usage.requests == 2
    assert judge.name == "decisions:gpt-6-luna+chat:m"


def test_independent_ratings_share_a_request() -> None:
    record = Record(question="Where?", contexts=(Context(text="In Ulm."),), answer="In Ulm.")
    with JudgeServer() as server:
        judge = DecisionsJudge(base_url=server.url)
        batcher = QuestionBatcher(judge=judge, fuse="record")
        metrics = [Faithfulness(), ContextRelevance(), ResponseGroundedness()]
        scores = closing(judge, batcher.run(record, metrics))
    assert [score.hard_value for score in scores] == [1.0, 1.0, 1.0]
    # A yes with a probability of .9 counts as .9; all probability of the ratings is on the highest level.
    assert [score.value for score in scores] == [0.9, 1.0, 1.0]
    assert len(server.received) == 1


def test_faults_have_names() -> None:
    with JudgeServer() as server:
        server.faults += [Fault(status=500)]
        assert ask(DecisionsJudge(base_url=server.url), TWO).usage.requests == 2
        server.faults += [Fault(status=500)]
        with pytest.raises(JudgeUnavailable):
            ask(DecisionsJudge(base_url=server.url, retries=0), TWO)
        server.faults += [Fault(raw=b'{"answers": null}')]
        with pytest.raises(MalformedReply):
            ask(DecisionsJudge(base_url=server.url), TWO)


def test_a_name_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        DecisionsJudge("", base_url="http://127.0.0.1:9")
