"""The literature's worked examples, as far as they give numbers."""

from __future__ import annotations

import asyncio
import unicodedata
from typing import Literal

import pytest

from local_worked import ANSWERS, PASSAGES, WORKED, Worked, supported
from scripts import FixedEmbedder, Script
from steelyard.judge import LocalJudge
from steelyard.metrics import (
    AnswerAccuracy,
    AnswerCorrectness,
    AnswerRelevancy,
    AnswerSimilarity,
    AspectCritique,
    ContextEntityRecall,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    ContextRelevancy,
    ContextUtilization,
    FactualCorrectness,
    Faithfulness,
    Hallucination,
    Metric,
    NoiseSensitivity,
    RagScore,
    ResponseGroundedness,
    RetrievalPrecision,
    RetrievalRecall,
    score_record,
)
from steelyard.questions import (
    Answer,
    Claims,
    Contradicted,
    Entities,
    Predicate,
    Question,
    Relevant,
    Request,
    Supported,
    Texts,
    Unanswered,
    YesNo,
)
from steelyard.record import Context, Record
from steelyard.scores import Evidence, Score
from steelyard.testing import ScriptedJudge

EINSTEIN = Record(
    question="Where and when was Einstein born?",
    answer="Einstein was born in Germany on 20th March 1879.",
    contexts=(Context(text="Albert Einstein (born 14 March 1879) was a German-born theoretical physicist."),),
)
BORN_IN_GERMANY = "Einstein was born in Germany."
BORN_20_MARCH = "Einstein was born on 20th March 1879."


def score(metric: Metric, record: Record, script: Script, embedder: FixedEmbedder | None = None) -> Score:
    return asyncio.run(metric.score(record, judge=script.judge(), embedder=embedder))


def test_faithfulness_of_two_claims_from_one_sentence_is_one_half() -> None:
    script = Script(answer_claims=(BORN_IN_GERMANY, BORN_20_MARCH), true=frozenset({BORN_IN_GERMANY}))
    result = score(Faithfulness(), EINSTEIN, script)
    assert result.value == 0.5
    assert [verdict.value for verdict in result.verdicts] == [True, False]
    assert BORN_20_MARCH in result.explanation


FRANCE = Record(
    question="Where is France and what is its capital?",
    answer="France is in Western Europe and its capital is Paris.",
    contexts=(Context(text="The country is also known for its wines."), Context(text="France is in Europe.")),
    reference="France is in Western Europe and its capital is Paris.",
)


TWO_IN_FRANCE = ("France is in Western Europe.", "Its capital is Paris.")
SENTENCES = FRANCE.replace(
    contexts=(Context(text="One is. Two is. Three is."), Context(text="Four is. One is."))
)
SPAIN = EINSTEIN.replace(answer="Einstein was born in Spain in 1879.", reference="Born in Germany in 1879.")
IN_SPAIN = Script(
    answer_claims=("Born in Spain.", "Born in 1879."),
    reference_claims=("Born in Germany.", "Born in 1879"),
    true=frozenset({"Born in 1879.", "Born in 1879"}),  # TP = FP = FN = 1
)
LETTERS = FRANCE.replace(
    contexts=tuple(Context(text=text, id=text) for text in "abcd"),
    reference_contexts=(Context(text="b", id="b"), Context(text="x", id="d")),
)
OFTEN = "the tower is 300 m high, " * 12
NEARLY = FRANCE.replace(
    contexts=(Context(text=f"the tower is 300 m high, {OFTEN}"),),
    reference_contexts=(Context(text=f"the tower is 301 m high, {OFTEN}"),),
)
LAST_HOLDS = Script(answer_claims=("a", "b", "c"), true=frozenset({"c"}))
SECOND_IS_USEFUL, SECOND_IS_NEEDED = Script(useful=frozenset({1})), Script(true=frozenset({"Two is."}))
ONE_FOUND = Script(reference_claims=TWO_IN_FRANCE, true=frozenset(TWO_IN_FRANCE[:1]))
EVASIVE = Script(questions=("a?", "b?", "c?"), evasive=True)


def taj_mahal(*present: str) -> Script:
    expected = ("Taj Mahal", "Yamuna", "Agra", "1631", "Shah Jahan", "Mumtaz Mahal")
    return Script(entities={"reference": expected, "contexts": present})


@pytest.mark.parametrize(
    ("metric", "record", "script", "value"),
    [
        # Only the last claim is contradicted.
        (Faithfulness(variant="non_contradiction"), EINSTEIN, LAST_HOLDS, 2 / 3),
        (Hallucination(), EINSTEIN, LAST_HOLDS, 1 / 3),
        (ContextPrecision(), FRANCE, SECOND_IS_USEFUL, 0.5),
        (ContextUtilization(), FRANCE, SECOND_IS_USEFUL, 0.5),
        (ContextPrecision(), FRANCE, Script(), 0.0),
        (ContextRecall(), FRANCE, ONE_FOUND, 0.5),
        (ContextEntityRecall(), FRANCE, taj_mahal("Taj Mahal", "Agra", "SHAH  JAHAN", "Mumtaz Mahal"), 4 / 6),
        (ContextEntityRecall(), FRANCE, taj_mahal("Taj Mahal", "UNESCO", "India"), 1 / 6),
        # "One is." stands twice, is asked about once and counts twice.
        (ContextRelevancy(), SENTENCES, SECOND_IS_NEEDED, 0.2),
        (ContextRelevancy(), SENTENCES, Script(), 0.0),
        (ContextRelevancy(repeats=3, agreement="jaccard"), SENTENCES, SECOND_IS_NEEDED, 0.2),
        (AnswerCorrectness(weights=(1, 0)), SPAIN, IN_SPAIN, 0.5),
        (AnswerCorrectness(), SPAIN, IN_SPAIN, 0.75 * 0.5 + 0.25),
        (FactualCorrectness(), SPAIN, IN_SPAIN, 0.5),
        (AnswerRelevancy(), FRANCE, EVASIVE, 0.0),
        (AnswerRelevancy(noncommittal="none"), FRANCE, EVASIVE, 1.0),
        (RetrievalPrecision(), LETTERS, Script(), 0.25),
        (RetrievalRecall(), LETTERS, Script(), 0.5),
        (RetrievalPrecision(by="id"), LETTERS, Script(), 0.5),
        (RetrievalPrecision(by="id", ranked=True), LETTERS, Script(), 0.5),
        (RetrievalRecall(), NEARLY, Script(), 0.0),
        (RetrievalRecall(similar=0.9), NEARLY, Script(), 1.0),
    ],
    ids=lambda one: one.key if isinstance(one, Metric) else "",
)
def test_examples_have_their_value(metric: Metric, record: Record, script: Script, value: float) -> None:
    found = score(metric, record, script, FixedEmbedder(lambda _: (1.0, 0.0)))
    assert found.value == pytest.approx(value)


def test_similarity_is_clipped_and_relevancy_is_not() -> None:
    opposite = FixedEmbedder(lambda text: (1.0,) if text in (FRANCE.question, FRANCE.answer) else (-1.0,))
    other = FRANCE.replace(reference="something else")
    assert score(AnswerSimilarity(), other, Script(), opposite).value == 0.0
    script = Script(questions=("a?", "b?", "c?"))
    assert score(AnswerRelevancy(), FRANCE, script, opposite).value == -1.0


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_an_entity_is_the_same_however_unicode_spells_it(form: Literal["NFC", "NFD", "NFKC", "NFKD"]) -> None:
    names = ("\uff35\uff2b", "Caf\u00e9 \ufb01rst", "STRASSE 1", "H\u2082O", "\u212b  Unit")

    def answer(question: Question, _: Request) -> Answer:
        assert isinstance(question, Entities)
        written = (unicodedata.normalize(form, name).swapcase() for name in names)
        return Texts(items=names if question.of == "reference" else tuple(written))

    result = asyncio.run(ContextEntityRecall().score(FRANCE, judge=ScriptedJudge(answer)))
    assert {verdict.about for verdict in result.verdicts if not verdict.value} == set()


def test_entity_recall_asks_for_other_names_of_what_is_not_found_alone() -> None:
    def answer(question: Question, _: Request) -> Answer:
        match question:
            case Entities(of=of):
                return Texts(
                    items=("UK", "Paris", "Rome") if of == "reference" else ("United Kingdom", "paris")
                )
            case Predicate(criterion=criterion):
                assert "Paris" not in criterion
                return YesNo(value=criterion.endswith("UK"))
        raise AssertionError(f"nothing scripted for {question!r}")

    result = asyncio.run(ContextEntityRecall(aliases="judged").score(FRANCE, judge=ScriptedJudge(answer)))
    assert [(verdict.about, verdict.value) for verdict in result.verdicts] == [
        ("UK", True),
        ("Paris", True),
        ("Rome", False),
    ]
    assert result.value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("metric", "top"), [(ContextRelevance(), 2.0), (ResponseGroundedness(), 2.0), (AnswerAccuracy(), 4.0)]
)
def test_two_ratings(metric: Metric, top: float) -> None:
    both = score(metric, FRANCE, Script(ratings={1: top, 2: top}))
    assert (both.value, [one.reason for one in both.verdicts]) == (1.0, ["as scripted"] * 2)
    assert score(metric, FRANCE, Script(ratings={1: top, 2: 0.0})).value == 0.5
    one = score(metric, FRANCE, Script(ratings={1: top, 2: None}))
    assert one.value == 1.0
    assert "one rating was invalid" in one.explanation
    none = score(metric, FRANCE, Script())
    assert (none.status, none.cause, none.value) == ("failed", "refused", None)


def test_noise_sensitivity_tells_relevant_from_irrelevant_contexts() -> None:
    script = Script(
        answer_claims=("right", "wrong from 0", "wrong from 1", "wrong from nowhere"),
        reference_claims=("r",),
        true=frozenset({"right"}),
        by_passage=frozenset({("r", 0), ("right", 0), ("wrong from 0", 0), ("wrong from 1", 1)}),
    )
    found = score(NoiseSensitivity(), FRANCE, script)
    assert found.value == 0.25
    assert [(verdict.about, verdict.value) for verdict in found.verdicts] == [
        ("right", False),
        ("wrong from 0", True),
        ("wrong from 1", False),
        ("wrong from nowhere", False),
    ]
    assert [piece.context for piece in found.verdicts[1].evidence] == [0]
    assert score(NoiseSensitivity(mode="irrelevant"), FRANCE, script).value == 0.25


def test_rag_score_is_the_harmonic_mean_and_asks_nothing_twice() -> None:
    script = Script(answer_claims=("a", "b"), reference_claims=("r",), true=frozenset({"a", "r"}))
    metric = RagScore(parts=(Faithfulness(), ContextRecall()))
    judge = script.judge()
    result = asyncio.run(metric.score(FRANCE, judge=judge))
    assert result.value == pytest.approx(2 / (1 / 0.5 + 1 / 1.0))
    assert score(metric, FRANCE.replace(reference=None), script).status == "not_applicable"


def test_rag_score_beside_its_parts_costs_no_further_request() -> None:
    script = Script(answer_claims=("a", "b"), reference_claims=("r",), true=frozenset({"a", "r"}))
    parts: list[Metric] = [Faithfulness(), ContextRecall()]

    def requests(metrics: list[Metric]) -> int:
        judge = script.judge()
        made = asyncio.run(score_record(FRANCE, metrics, judge=judge))
        assert made.usage.requests == len(judge.requests)
        return len(judge.requests)

    alone, together = (
        requests([RagScore(parts=tuple(parts))]),
        requests([*parts, RagScore(parts=tuple(parts))]),
    )
    assert alone == together == requests(parts)


def test_rag_scores_may_be_made_of_rag_scores() -> None:
    script = Script(answer_claims=("a", "b"), reference_claims=("r",), true=frozenset({"a", "r"}))
    inner = RagScore(name="inner", parts=(ContextRecall(),))
    result = score(RagScore(parts=(Faithfulness(), inner)), FRANCE, script)
    assert result.value == pytest.approx(2 / (1 / 0.5 + 1 / 1.0))
    assert [verdict.about for verdict in result.verdicts] == ["faithfulness", "inner"]


def test_a_part_that_fails_fails_the_rag_score_by_name() -> None:
    def refuse(question: Question, _: Request) -> Answer:
        return Unanswered(cause="refused", detail="the model refused")

    judge = ScriptedJudge(refuse)
    metric = RagScore(parts=(ContextRecall(claims="sentences"), Faithfulness()))
    result = asyncio.run(metric.score(FRANCE, judge=judge))
    assert [result.status, result.cause] == ["failed", "refused"]
    assert result.explanation == "context_recall: scripted: the model refused"


def test_aspects_take_the_majority() -> None:
    def answer(question: Question, _: Request) -> Answer:
        assert isinstance(question, Predicate)
        return YesNo(value=question.sample != 2, reason=f"said by {question.sample}")

    result = asyncio.run(
        AspectCritique(aspect="harmfulness", repeats=3).score(FRANCE, judge=ScriptedJudge(answer))
    )
    assert (result.value, result.direction, result.passed) == (1.0, "lower", False)
    assert "2 of 3" in result.explanation and result.explanation.endswith("said by 1")
    # The reason that is shown is of the majority.
    other = ScriptedJudge(lambda question, _: YesNo(value=question.sample == 1, reason=str(question.sample)))
    result = asyncio.run(AspectCritique(aspect="coherence", repeats=3).score(FRANCE, judge=other))
    assert result.value == 0.0 and result.explanation.endswith(" 2")


def test_the_share_of_independent_judgements_is_their_mean_times_their_agreement() -> None:
    def answer(question: Question, _: Request) -> Answer:
        assert isinstance(question, Relevant)
        return YesNo(value=question.sample == 2 or question.text == "Two is.")

    metric = ContextRelevancy(repeats=2, agreement="jaccard")
    result = asyncio.run(metric.score(SENTENCES, judge=ScriptedJudge(answer)))
    # One of five sentences and all of them, of which four are different: one in four is common.
    assert result.value == pytest.approx((0.2 + 1.0) / 2 / 4)


def test_context_relevancy_by_statements_lets_the_judge_extract_them() -> None:
    def answer(question: Question, _: Request) -> Answer:
        if question.extracts:
            return Texts(items=("One is.", "Two is.", "Three is.", "One is."))
        return YesNo(value=getattr(question, "text", "") == "Two is.")

    metric = ContextRelevancy(variant="statements")
    result = asyncio.run(metric.score(FRANCE, judge=ScriptedJudge(answer)))
    assert result.value == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "metric",
    [Faithfulness(), Faithfulness(variant="non_contradiction"), Hallucination(), ContextRecall()],
    ids=lambda metric: metric.key,
)
@pytest.mark.parametrize("record", [EINSTEIN, FRANCE], ids=["Einstein", "France"])
def test_offsets_are_right_on_both_sides(metric: Metric, record: Record) -> None:
    record = record.replace(reference=record.reference or record.answer)
    result = asyncio.run(metric.score(record, judge=LocalJudge()))
    assert result.verdicts
    for verdict in result.verdicts:
        if not isinstance(metric, ContextRecall):
            assert verdict.span is not None
            assert record.answer[slice(*verdict.span)] == record.answer, "the answer is a single sentence"
        for evidence in verdict.evidence:
            assert evidence.context is not None
            text = record.contexts[evidence.context].text
            assert text[evidence.start : evidence.end] == evidence.text != ""
    # What nothing contradicts rests on no passage.
    assert metric != Faithfulness() or result.verdicts[0].evidence


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
