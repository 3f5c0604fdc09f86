"""Every kind of question, put to every judge there is: it answers, or it says that it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest

from judge.asked import closing
from judge_server import JudgeServer, filled
from steelyard.judge import ChatJudge, DecisionsJudge, LocalJudge
from steelyard.judge.chat import ModelJudge
from steelyard.judge.dry_run import DryRunJudge
from steelyard.questions import (
    QUESTION_KINDS,
    Answer,
    Capabilities,
    Choose,
    Claims,
    Contradicted,
    Embed,
    Entities,
    GeneratedQuestions,
    Judge,
    MetricRun,
    Noncommittal,
    Part,
    Predicate,
    Question,
    QuestionBatcher,
    Rating,
    Relevant,
    Request,
    Same,
    ScoreOf,
    Sufficient,
    Supported,
    Unanswered,
    Useful,
)
from steelyard.record import Context, Record
from steelyard.scores import Score, Usage
from steelyard.testing import ScriptedJudge

RECORD = Record(
    question="Where was Einstein born?",
    contexts=(Context(text="Einstein was born in Ulm."),),
    answer="Einstein was born in Ulm.",
    reference="In Ulm.",
)
NEEDS: frozenset[Part] = frozenset({"answer"})
ONE_OF_EACH: tuple[Question, ...] = (
    Supported(claim="Einstein was born in Ulm."),
    Contradicted(claim="Einstein was born in Ulm."),
    Useful(context=0),
    Relevant(text="Einstein was born in Ulm."),
    Same(claim="Einstein was born in Ulm.", among="reference", of="answer"),
    Noncommittal(),
    Predicate(criterion="Is it short?", needs=NEEDS),
    Rating(instruction="How good?", levels=((0, "bad"), (1, "good")), needs=NEEDS),
    Choose(instruction="Which?", options=("red", "blue"), needs=NEEDS),
    Sufficient(),
    Claims(),
    Entities(of="answer"),
    GeneratedQuestions(count=2),
)


class Obedient(ModelJudge):
    """A judge of a framework of one's own, whose model fills in the JSON schema that it is shown."""

    def __init__(self) -> None:
        super().__init__(
            name="obedient", timeout=10, concurrency=2, reasons=True, max_questions=60, max_characters=10_000
        )

    async def complete(self, system: str, user: str) -> tuple[str, Usage]:
        shown = json.loads(user.rpartition("\n")[2])
        return json.dumps(filled(shown)), Usage(prompt_tokens=len(system) + len(user))


JUDGES: dict[str, Callable[[str], Judge]] = {
    "chat": lambda url: ChatJudge("m", base_url=url),
    "a framework's model": lambda _: Obedient(),
    "decisions": lambda url: DecisionsJudge(base_url=url),
    "decisions with an extractor": lambda url: DecisionsJudge(
        base_url=url, extractor=ChatJudge("m", base_url=url)
    ),
    "local": lambda _: LocalJudge(),
    "chat in a dry run": lambda _: DryRunJudge(partial(ChatJudge, "m")),
    "decisions in a dry run": lambda _: DryRunJudge(DecisionsJudge),
}


def put(judge: Judge, question: Question) -> tuple[Answer, Usage]:
    """What one question comes back with."""
    answers: list[Answer] = []

    class Asks:
        name = "asks"

        def ask(self, record: Record) -> MetricRun:
            answers.extend((yield [question]))
            return Score(metric="asks", status="scored", value=1.0)

    batcher = QuestionBatcher(judge=judge)
    closing(judge, batcher.run(RECORD, [Asks()]))
    return answers[0], batcher.usage


def test_there_is_a_sample_of_every_kind() -> None:
    assert {type(question) for question in ONE_OF_EACH} == QUESTION_KINDS


def test_every_question_that_a_judge_can_be_asked_is_among_the_kinds() -> None:
    def below(kind: type[Question]) -> set[type[Question]]:
        own = {kind} if "kind" in vars(kind) else set()
        return own.union(*map(below, kind.__subclasses__()))

    package = {kind for kind in below(Question) if kind.__module__.startswith("steelyard.")}
    assert package == QUESTION_KINDS | {Embed, ScoreOf}


def test_kinds_have_names_of_their_own() -> None:
    assert len({kind.kind for kind in QUESTION_KINDS}) == len(QUESTION_KINDS)


@pytest.mark.parametrize("question", ONE_OF_EACH, ids=lambda question: question.kind)
@pytest.mark.parametrize("judge", JUDGES)
def test_a_judge_answers_a_kind_or_says_that_it_cannot(judge: str, question: Question) -> None:
    with JudgeServer() as server:
        made = JUDGES[judge](server.url)
        answer, usage = put(made, question)
    if type(question) in made.capabilities.kinds:
        assert isinstance(answer, question.form), answer
        assert usage.reasked == 0
    else:
        assert isinstance(answer, Unanswered)
        assert answer.cause == "unsupported"
        assert repr(question.kind) in answer.detail
        assert usage.requests == 0


def test_chat_models_are_asked_everything_and_the_local_judge_what_it_can() -> None:
    cannot = {Rating, Predicate, Choose, GeneratedQuestions}
    assert ChatJudge("m", base_url="http://127.0.0.1:1/v1").capabilities.kinds == QUESTION_KINDS
    assert LocalJudge().capabilities.kinds == QUESTION_KINDS - cannot
    decisions = DecisionsJudge(base_url="http://127.0.0.1:1/v1").capabilities.kinds
    assert decisions == QUESTION_KINDS - {Entities, GeneratedQuestions}


def test_a_judge_without_a_kind_is_never_sent_it() -> None:
    def fail(question: Question, request: Request) -> Answer:
        raise AssertionError(f"{question!r} was sent")

    for question in ONE_OF_EACH:
        others = QUESTION_KINDS - {type(question)}
        answer, _ = put(ScriptedJudge(fail, capabilities=Capabilities(kinds=others)), question)
        assert isinstance(answer, Unanswered)
        assert answer.cause == "unsupported"
