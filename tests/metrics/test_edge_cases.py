"""Bad input: each metric by its own needs, the same everywhere, and never a number where there is none."""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import dataclass
from typing import Any

import pytest

from scripts import FixedEmbedder, Script
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.errors import ConfigurationError
from steelyard.judge import LocalJudge
from steelyard.metrics import (
    ALIASES,
    ALL,
    AnswerCorrectness,
    AnswerRelevancy,
    AnswerSimilarity,
    AspectCritique,
    ContextEntityRecall,
    ContextRecall,
    ContextRelevancy,
    ContextSufficiency,
    CustomJudge,
    FactualCorrectness,
    Faithfulness,
    Hallucination,
    Metric,
    NoiseSensitivity,
    RagScore,
    ResponseGroundedness,
    RubricScore,
    default_metrics,
    get_metric,
    parse_metrics,
    score_record,
)
from steelyard.questions import (
    Answer,
    Capabilities,
    Claims,
    Fuse,
    Level,
    MetricRun,
    Part,
    Question,
    Request,
    Sufficient,
    Supported,
    Texts,
    Unanswered,
    YesNo,
)
from steelyard.record import Context, Record
from steelyard.scores import Score
from steelyard.testing import ScriptedJudge

FULL = Record(
    question="q?",
    answer="An answer.",
    contexts=(Context(text="A context."),),
    reference="A reference.",
    reference_contexts=(Context(text="A context."),),
)
NAMES = {
    "question": FULL.replace(question=" "),
    "answer": FULL.replace(answer=""),
    "contexts": FULL.replace(contexts=(Context(text=""),)),
    "reference": FULL.replace(reference=None),
    "reference_contexts": FULL.replace(reference_contexts=()),
}
EMBEDDER = FixedEmbedder(lambda _: (1.0,))


def score(metric: Metric, record: Record, script: Script | None = None) -> Score:
    judge = (script or Script(ratings={0: 1.0, 1: 2.0, 2: 2.0}, questions=("q?",))).judge()
    return asyncio.run(metric.score(record, judge=judge, embedder=EMBEDDER))


@pytest.mark.parametrize("part", NAMES)
@pytest.mark.parametrize("metric", [metric for metric in ALL if metric is not RagScore], ids=lambda m: m.key)
def test_a_metric_misses_what_it_needs_and_nothing_else(metric: type[Metric], part: str) -> None:
    made = metric()
    result = score(made, NAMES[part])
    if part in made.needs:
        assert (result.status, result.cause, result.value) == ("not_applicable", f"missing_{part}", None)
    else:
        assert result.cause != f"missing_{part}"


def test_faithfulness_needs_no_question() -> None:
    script = Script(answer_claims=("a",), true=frozenset({"a"}))
    assert score(Faithfulness(), NAMES["question"], script).value == 1.0


@pytest.mark.parametrize(
    ("metric", "cause"),
    [
        (Faithfulness(), "no_claims"),
        (ContextRecall(), "no_claims"),
        (NoiseSensitivity(), "no_claims"),
        (ContextEntityRecall(), "no_entities"),
        (AnswerRelevancy(variant="statements"), "no_statements"),
        (AnswerRelevancy(), "no_questions"),
    ],
)
def test_nothing_to_divide_by_is_not_applicable(metric: Metric, cause: str) -> None:
    result = score(metric, FULL, Script())
    assert (result.status, result.cause, result.value) == ("not_applicable", cause, None)


def test_a_standalone_question_is_used_where_there_is_one() -> None:
    record = NAMES["question"].replace(standalone_question="What is the answer?")
    judge = Script(questions=("p?",)).judge()
    asyncio.run(AnswerRelevancy(count=1).score(record, judge=judge, embedder=EMBEDDER))
    assert "What is the answer?" in EMBEDDER.texts


def test_what_a_judge_cannot_answer_is_not_applicable() -> None:
    judge = ScriptedJudge(Script().judge().script, capabilities=Capabilities(kinds=frozenset({Supported})))
    result = asyncio.run(Faithfulness().score(FULL, judge=judge))
    assert (result.status, result.cause) == ("not_applicable", "unsupported")
    assert "'scripted' cannot answer 'claims'" in result.explanation
    assert not judge.requests


def test_the_default_suite_is_what_the_judge_can_honestly_answer() -> None:
    writer = Script().judge()
    assert [metric.options_text for metric in default_metrics(writer)][:2] == [
        "claims=extracted, variant=entailment",
        "variant=questions, count=3, noncommittal=all, repeats=1",
    ]
    for kinds in (frozenset({Supported}), frozenset({Supported, Claims})):
        verifier = ScriptedJudge(writer.script, capabilities=Capabilities(kinds=kinds))
        assert [metric.options_text for metric in default_metrics(verifier)][:2] == [
            "claims=sentences, variant=entailment",
            "variant=statements, claims=sentences",
        ]


@pytest.mark.parametrize(
    "answer", ["I do not know.", "Do you mean the first one?", "Yes.", "The context does not say."]
)
def test_a_sentence_that_states_nothing_is_no_claim(answer: str) -> None:
    score_ = score(Faithfulness(claims="sentences"), FULL.replace(answer=answer))
    assert (score_.status, score_.cause) == ("not_applicable", "no_claims")


@pytest.mark.parametrize(
    "answer", ["The treaty does not mention slavery.", "The cause is unknown.", "No data is lost."]
)
def test_a_negative_statement_is_a_claim(answer: str) -> None:
    assert score(Faithfulness(claims="sentences"), FULL.replace(answer=answer)).value == 0.0


def test_metrics_are_found_by_name() -> None:
    assert {get_metric(metric.key) for metric in ALL} == set(ALL)
    assert get_metric("Context-Recall") is ContextRecall
    assert get_metric("harmfulness")().name == "harmfulness"
    assert len(parse_metrics(["all"], Script().judge())) == len(ALL)
    with pytest.raises(ConfigurationError, match="no metric is named 'speed'; there are faithfulness, "):
        get_metric("speed")
    with pytest.raises(ConfigurationError, match=r"'faithfulnes'; did you mean 'faithfulness'\?"):
        get_metric("faithfulnes")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Faithfulness(variant="maybe"),  # type: ignore[arg-type]
            "variant='maybe' is not one of 'entailment', 'non_contradiction'",
        ),
        (lambda: AnswerRelevancy(count=0), "count=0"),
        (lambda: AspectCritique(aspect="tone"), "aspect 'tone' needs a criterion="),
        (lambda: AspectCritique(aspect="coherence", repeats=2), "repeats must be odd, not 2"),
        (lambda: CustomJudge(), "needs a criterion="),
        (lambda: RagScore(parts=(get_metric("hallucination")(),)), "'hallucination'"),
        (lambda: RagScore(parts=(Faithfulness(judge=Script().judge()),)), "give judge= to RagScore"),
        (lambda: CustomJudge(criterion="c", scale=(0, 2.5)), "whole numbers"),  # type: ignore[arg-type]
        (lambda: AnswerCorrectness(weights=(1, 2, 3)), "two numbers"),  # type: ignore[arg-type]
        (lambda: Faithfulness(judge="local"), "judge='local' is not a Judge"),  # type: ignore[arg-type]
        (lambda: Faithfulness(threshold="0.8"), "threshold='0.8' is not a number"),  # type: ignore[arg-type]
        (lambda: Faithfulness(threshold=math.nan), "threshold=nan is not a number"),
        (lambda: AspectCritique(aspect="coherence", shown="answer"), "shown='answer' must"),  # type: ignore[arg-type]
        (lambda: AspectCritique(aspect="coherence", shown=()), "shown=() must"),
        (lambda: CustomJudge(criterion="c", shown=("answers",)), "must be a tuple out of 'question'"),  # type: ignore[arg-type]
    ],
)
def test_wrong_options_fail_at_once(make: type[Metric], message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make()


@dataclass(frozen=True)
class Encoder:
    value: Any
    name: str = "encoder"

    def similarity(self, one: str, other: str) -> Any:
        return self.value


class OneHalf:
    """A number of some library, as models return them."""

    def __float__(self) -> float:
        return 0.5


def test_a_value_is_a_plain_float_whatever_a_model_returns() -> None:
    value = score(AnswerSimilarity(cross_encoder=Encoder(OneHalf())), FULL).value
    assert (value, type(value)) == (0.5, float)


def test_no_number_is_a_failure_and_never_zero() -> None:
    found = score(AnswerSimilarity(cross_encoder=Encoder(math.nan)), FULL)
    assert (found.status, found.value, found.cause) == ("failed", None, "metric_error")


@dataclass(frozen=True, kw_only=True)
class Careless(Metric):
    """A metric of a user's own."""

    key = "careless"
    gives: Any = None

    @property
    def needs(self) -> tuple[Part, ...]:
        return ()

    def questions(self, record: Record) -> MetricRun:
        return Score(metric="another", status="scored", value=self.gives)
        yield []


@pytest.mark.parametrize("gives", [None, "high", math.inf, [1.0]])
def test_a_metric_that_gives_no_number_fails(gives: Any) -> None:
    found = score(Careless(gives=gives), FULL)
    assert (found.metric, found.status, found.value) == ("careless", "failed", None)


def test_a_score_is_under_its_metrics_own_name() -> None:
    assert score(Careless(gives=1), FULL).metric == "careless"


def test_blank_expected_contexts_are_none() -> None:
    record = FULL.replace(reference_contexts=(Context(text=" "),))
    script = Script(answer_claims=("a",))
    assert "the retrieved contexts" in score(Hallucination(), record, script).explanation


def test_an_evasive_answer_shows_who_said_so() -> None:
    found = score(AnswerRelevancy(), FULL, Script(evasive=True, questions=("q",) * 3))
    assert found.value == 0.0
    assert [(verdict.kind, verdict.value) for verdict in found.verdicts] == [("noncommittal", True)]


@pytest.mark.parametrize("metric", [AspectCritique, CustomJudge, RubricScore])
def test_a_criterion_that_sees_no_answer_needs_none(metric: Any) -> None:
    options = {} if metric is RubricScore else {"criterion": "Is it about ships?"}
    made = metric(shown=("question", "contexts"), **options)
    assert made.missing(FULL.replace(answer="")) is None
    assert made.missing(FULL.replace(contexts=())) == "contexts"


def test_the_rag_score_of_a_name_is_made_of_what_the_judge_can_answer() -> None:
    judge = LocalJudge()
    named, alone, relevancy = parse_metrics(["rag_score", "faithfulness", "answer_relevancy"], judge)
    assert isinstance(named, RagScore)
    assert named.parts[:2] == (alone, relevancy)
    assert asyncio.run(named.score(FULL.replace(answer="A context is here."), judge=judge)).status == "scored"


@pytest.mark.parametrize("name", [name for name in ALIASES if name != "aspect_critic"])
def test_names_of_other_libraries_are_taken(name: str) -> None:
    (metric,) = parse_metrics([name.upper()], LocalJudge())
    assert metric.name in {known.key for known in ALL}


def test_a_name_for_a_variant_keeps_the_variant() -> None:
    made = parse_metrics(["contextual_relevancy", "context_relevancy"], LocalJudge())
    assert [metric.options["variant"] for metric in made] == ["statements", "sentences"]
    with pytest.raises(ConfigurationError, match="needs a criterion="):
        parse_metrics(["aspect_critic"], LocalJudge())


def test_the_aspect_correctness_is_judged_with_the_reference_in_view() -> None:
    assert "reference" in AspectCritique(aspect="correctness").shown
    assert "reference" not in AspectCritique(aspect="conciseness").shown
    assert AspectCritique(aspect="correctness", shown=("answer",)).shown == ("answer",)


def test_the_name_that_two_libraries_use_differently_is_warned_about(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew = WarnOnce(SafeLogger("steelyard.metrics"))
    monkeypatch.setattr("steelyard.metrics._warn", anew)
    get_metric("nv_context_relevance")
    assert "context_relevancy" not in caplog.text
    get_metric("context_relevance")
    assert "context_relevancy" in caplog.text


def test_the_whole_answer_can_be_one_claim() -> None:
    record = FULL.replace(answer="One is so. Two is so.")
    seen: list[str] = []

    def think(question: Question, request: Request) -> Answer:
        assert isinstance(question, Supported)
        seen.append(question.claim)
        return YesNo(value=True)

    made = asyncio.run(Faithfulness(claims="whole").score(record, judge=ScriptedJudge(think)))
    assert (made.value, seen) == (1.0, [record.answer])


def test_both_readings_of_hallucination_and_of_recall() -> None:
    def think(question: Question, request: Request) -> Answer:
        match question:
            case Claims(of="answer"):
                return Texts(items=("a.", "b.", "c."))
            case Claims():
                return Texts(items=("x.", "y."))
            case Supported(of="answer"):
                return YesNo(value=question.claim != "c.")
            case Supported():
                return YesNo(value=question.claim == "x.")
            case _:
                return YesNo(value="c1" in getattr(question, "criterion", ""))

    def value(metric: Metric, record: Record) -> float | None:
        return asyncio.run(metric.score(record, judge=ScriptedJudge(think), embedder=EMBEDDER)).value

    # Two of three claims of the answer hold; one of two of the reference is there.
    assert value(FactualCorrectness(mode="recall"), FULL) == pytest.approx(1 / 2)
    assert value(FactualCorrectness(mode="recall", recall="counts"), FULL) == pytest.approx(2 / 3)
    two = FULL.replace(contexts=(Context(text="A."), Context(text="B.")), reference_contexts=())
    assert value(Hallucination(over="contexts"), two) == pytest.approx(1 / 2)


def test_what_company_adds_to_a_view_stands_on_the_score_and_in_its_id() -> None:
    judge = Script(
        answer_claims=("a.",),
        reference_claims=("b.",),
        ratings={0: 1.0, 1: 2.0, 2: 2.0},
        questions=("q?",),
    ).judge()

    def scores(*metrics: Metric, fuse: Fuse = "view") -> dict[str, Score]:
        made = asyncio.run(score_record(FULL, list(metrics), judge=judge, embedder=EMBEDDER, fuse=fuse))
        return {score.metric: score for score in made.scores}

    relevancy, grounded, faithful = AnswerRelevancy(), ResponseGroundedness(), Faithfulness()
    alone = scores(relevancy)["answer_relevancy"]
    beside = scores(relevancy, grounded)["answer_relevancy"]
    assert alone.also_seen == {}
    assert beside.also_seen == {"generated_questions": ("contexts",)}
    assert alone.id != beside.id
    # A verdict has one view, whatever stands beside it.
    both = scores(faithful, grounded, ContextRecall(), AnswerCorrectness())["faithfulness"]
    assert both.also_seen == {"claims": ("reference",)}
    assert "supported" not in both.also_seen
    fused = scores(faithful, ContextRecall(), fuse="record")["faithfulness"]
    assert "reference" in fused.also_seen["supported"]
    assert fused.id != scores(faithful, fuse="record")["faithfulness"].id


RECORD = Record(
    question="When was it built?",
    answer="It was built in 1889. It stands in Paris.",
    contexts=(Context(text="The tower in Paris was built in 1889."),),
)


@pytest.mark.parametrize(("unsupported", "passed"), [("", True), ("Paris", False)])
def test_faithful_is_what_has_every_claim_supported(unsupported: str, passed: bool) -> None:
    def answer(question: Question, _: Request) -> Answer:
        good = not unsupported or unsupported not in getattr(question, "claim", "")
        return YesNo(value=good, probability=0.9 if good else 0.1)

    metric = Faithfulness(claims="sentences")
    score = asyncio.run(metric.score(RECORD, judge=ScriptedJudge(answer)))
    assert (score.passed, score.threshold) == (passed, 1.0)
    assert score.value is not None and score.value < 1.0


@pytest.mark.parametrize("metric", [AnswerRelevancy(), ContextRelevancy()])
def test_what_has_no_natural_bar_has_no_verdict(metric: Metric) -> None:
    assert metric.threshold is None


def test_a_bar_of_ones_own_is_held_against_the_value() -> None:
    judge = ScriptedJudge(lambda question, _: YesNo(value=True, probability=0.9))
    metric = Faithfulness(claims="sentences", threshold=0.95)
    score = asyncio.run(metric.score(RECORD, judge=judge))
    assert score.passed is False


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
