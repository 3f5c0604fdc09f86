"""Each rule by itself, over a record and its scores; and what has nothing to go by."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from steelyard.diagnosis import MENDS, diagnose
from steelyard.record import Context, Record, Stage
from steelyard.scores import (
    CAUSES,
    Diagnosis,
    Evaluation,
    Evidence,
    Score,
    Verdict,
    evaluation_from_dict,
    evaluation_to_dict,
)

FERRY = "The ferry to Skarn leaves at nine."
PRICE = "A motorcycle on the ferry to Skarn costs 11 crowns."


def turn(**fields: Any) -> Record:
    given = {
        "question": "What does a motorcycle cost on the ferry to Skarn?",
        "answer": "It costs 12 crowns.",
    }
    return Record(**{**given, "contexts": [PRICE], **fields})


def faithful(*verdicts: Verdict, passed: bool = False) -> Score:
    return Score(
        metric="faithfulness", status="scored", value=float(passed), passed=passed, verdicts=verdicts
    )


def claim(value: bool, *, about: str = "It costs 12 crowns.", **notes: Any) -> Verdict:
    evidence = (Evidence(context=0, notes=notes),) if notes else ()
    return Verdict(about=about, kind="supported", value=value, evidence=evidence)


def sufficient(level: float, value: float) -> Score:
    verdict = Verdict(about="", kind="sufficient", value=level)
    passed = value >= 0.75
    return Score(
        metric="context_sufficiency", status="scored", value=value, passed=passed, verdicts=(verdict,)
    )


def found(record: Record, *scores: Score) -> Diagnosis:
    made = diagnose(record, scores)
    assert made is not None
    return made


def test_every_cause_has_what_mends_it() -> None:
    assert set(MENDS) == set(CAUSES)


def test_an_error_is_a_step_that_failed() -> None:
    assert found(turn(status="error", answer="")).cause == "step_failed"


def test_what_was_cancelled_is_not_diagnosed() -> None:
    assert diagnose(turn(status="cancelled"), [faithful(claim(False))]) is None


def test_passages_that_stand_in_no_prompt() -> None:
    made = found(turn(contexts=(), retrieved=[PRICE, FERRY]))
    assert (made.cause, made.lost, made.answered_anyway) == ("passages_not_shown", (0, 1), True)


def test_nothing_retrieved_is_a_cause_of_a_bad_answer_only() -> None:
    assert found(turn(contexts=(), answer="I do not know.")).cause == "nothing_retrieved"
    assert diagnose(turn(contexts=(), question="Hello!", answer="Good morning to you."), []) is None


def test_an_answer_that_was_cut_short() -> None:
    assert found(turn(status="truncated"), faithful(claim(False))).cause == "answer_cut_short"


@pytest.mark.parametrize(
    ("level", "cause"), [(0.0, "outside_collection"), (1.0, "passage_not_found"), (2.0, "passage_not_found")]
)
def test_too_little_was_found(level: float, cause: str) -> None:
    made = found(turn(contexts=[FERRY]), faithful(claim(False)), sufficient(level, level / 4))
    assert (made.cause, made.answered_anyway) == (cause, True)
    assert made.rule == "sufficiency by judge"


def test_without_a_judge_of_sufficiency_words_decide_and_say_so() -> None:
    other = "Sourdough needs flour and water."
    made = found(turn(contexts=[other], answer="I do not know."))
    assert (made.cause, made.rule, made.answered_anyway) == (
        "outside_collection",
        "sufficiency by words",
        False,
    )


def test_a_passage_that_a_later_step_dropped() -> None:
    stages = (Stage(name="index", query="q", contexts=(Context(text=FERRY), Context(text=PRICE))),)
    made = found(turn(contexts=[FERRY], stages=stages), faithful(claim(False)), sufficient(1.0, 0.0))
    assert (made.cause, made.stage, made.lost) == ("passage_lost", "index", (1,))


def test_a_passage_that_was_retrieved_and_not_shown() -> None:
    made = found(
        turn(contexts=[FERRY], retrieved=[PRICE, FERRY]), faithful(claim(False)), sufficient(1.0, 0.0)
    )
    assert (made.cause, made.stage, made.lost) == ("passage_lost", "", (0,))


def test_lost_passages_are_told_by_their_places_in_one_step() -> None:
    other = "On the ferry to Skarn a motorcycle costs 11."
    record = turn(
        contexts=[FERRY],
        retrieved=(Context(text=FERRY), Context(text="Rain."), Context(text=other)),
        stages=(Stage(name="ranked", query="?", contexts=(Context(text=FERRY), Context(text=PRICE))),),
    )
    made = found(record, faithful(claim(False)), sufficient(1.0, 0.0))
    assert (made.cause, made.stage, made.lost) == ("passage_lost", "ranked", (1,))


def test_a_passage_that_says_no_more_was_not_lost() -> None:
    other = "Sourdough needs flour and water."
    made = found(
        turn(contexts=[FERRY], retrieved=[other, FERRY]), faithful(claim(False)), sufficient(0.0, 0.0)
    )
    assert (made.cause, made.lost) == ("outside_collection", ())


def test_a_passage_that_several_steps_had_was_lost_after_the_last_of_them() -> None:
    had = (Context(text=FERRY), Context(text=PRICE))
    stages = (
        Stage(name="index", query="q", contexts=had),
        Stage(name="ranked", query="q", contexts=had[::-1]),
    )
    bad = (faithful(claim(False)), sufficient(1.0, 0.0))
    made = found(turn(contexts=[FERRY], stages=stages), *bad)
    assert (made.cause, made.stage, made.lost) == ("passage_lost", "ranked", (0,))
    # What was retrieved in the end is that of no step.
    made = found(turn(contexts=[FERRY], stages=stages, retrieved=[FERRY, PRICE]), *bad)
    assert (made.cause, made.stage, made.lost) == ("passage_lost", "", (1,))


def test_a_passage_that_was_cut() -> None:
    cut = [Context(text=FERRY, seen=0.8), Context(text=PRICE, seen=0.4), Context(text="Rain.", seen=1.0)]
    made = found(turn(contexts=cut, answer="I do not know."), sufficient(3.0, 1.0))
    assert (made.cause, made.contexts) == ("passage_cut", (0, 1))
    assert made.strength == pytest.approx(0.6)
    # The share and the passage that it is told of belong together.
    assert made.because == "40% of passage 2 stands in the prompt"


def test_of_an_answer_without_an_end_its_beginning_says_whether_it_evades() -> None:
    answer = "It costs 11 crowns. " * 1_000 + "I do not know. " * 200_000
    made = diagnose(turn(answer=answer), [faithful(claim(True), passed=True), sufficient(4.0, 1.0)])
    assert made is not None and made.backing == "earned"


def _conflict() -> tuple[Record, tuple[Score, ...]]:
    exclude = Verdict(about="It costs 12 crowns.", kind="contradicted", value=True, probability=0.8)
    other = Score(metric="hallucination", status="scored", value=1.0, passed=False, verdicts=(exclude,))
    return turn(), (faithful(claim(True), passed=True), other, sufficient(3.0, 1.0))


def _contradiction(chance: float) -> tuple[Record, tuple[Score, ...]]:
    exclude = Verdict(about="It costs 12 crowns.", kind="contradicted", value=True, probability=chance)
    other = Score(metric="hallucination", status="scored", value=1.0, passed=False, verdicts=(exclude,))
    return turn(), (other, sufficient(3.0, 1.0))


def _evasion(chance: float) -> tuple[Record, tuple[Score, ...]]:
    verdict = Verdict(about="", kind="noncommittal", value=True, probability=chance)
    score = Score(metric="answer_relevancy", status="scored", value=0.0, passed=False, verdicts=(verdict,))
    return turn(answer="I cannot say."), (score, sufficient(3.0, 0.9))


def _invented(*chances: float | None) -> tuple[Record, tuple[Score, ...]]:
    verdicts = [
        Verdict(about=f"claim {place}", kind="supported", value=False, probability=chance)
        for place, chance in enumerate(chances)
    ]
    return turn(), (faithful(claim(True, about="a"), *verdicts), sufficient(3.0, 1.0))


@pytest.mark.parametrize(
    ("bad", "cause", "strength"),
    [
        ((turn(status="error"), ()), "step_failed", 1.0),
        ((turn(contexts=(), retrieved=[PRICE]), ()), "passages_not_shown", 1.0),
        ((turn(status="truncated"), (faithful(claim(False)),)), "answer_cut_short", 1.0),
        ((turn(contexts=()), (faithful(claim(False)),)), "nothing_retrieved", 1.0),
        # Farther from the middle of what was judged, up or down, is surer.
        ((turn(contexts=[FERRY]), (faithful(claim(False)), sufficient(0.0, 0.0))), "outside_collection", 1.0),
        ((turn(contexts=[FERRY]), (faithful(claim(False)), sufficient(1.0, 0.3))), "passage_not_found", 0.4),
        (_conflict(), "passages_conflict", 0.8),
        # A yes that speaks against the answer.
        (_contradiction(0.9), "contradicted", 0.9),
        # No surer than either of what it rests on.
        (_evasion(0.6), "evasive", 0.6),
        (_evasion(0.95), "evasive", 0.8),
        # As sure as of the worst claim.
        (_invented(0.4, 0.1, 0.3), "invented", 0.9),
        (_invented(0.4), "invented", 0.6),
        # Of a judge that gives no probabilities the word alone counts.
        (_invented(None), "invented", 1.0),
    ],
)
def test_a_cause_is_as_strong_as_what_speaks_for_it(
    bad: tuple[Record, tuple[Score, ...]], cause: str, strength: float
) -> None:
    made = found(bad[0], *bad[1])
    assert made.cause == cause
    assert made.strength == pytest.approx(strength)


def test_what_the_passages_exclude() -> None:
    exclude = Verdict(about="It costs 12 crowns.", kind="contradicted", value=True)
    hallucinated = Score(
        metric="hallucination", status="scored", value=1.0, passed=False, verdicts=(exclude,)
    )
    made = found(turn(), faithful(claim(False)), hallucinated, sufficient(3.0, 1.0))
    assert (made.cause, made.metric, made.claim) == ("contradicted", "hallucination", 0)


def test_a_number_that_differs_from_its_source_contradicts_it() -> None:
    turned = claim(False, missing_numbers=("12",), signals={"window": 0.8})
    assert found(turn(), faithful(turned), sufficient(3.0, 1.0)).cause == "contradicted"
    far = claim(False, missing_numbers=("12",), signals={"window": 0.2})
    assert found(turn(), faithful(far), sufficient(3.0, 1.0)).cause == "invented"


def test_passages_that_disagree() -> None:
    exclude = Verdict(about="It costs 12 crowns.", kind="contradicted", value=True)
    hallucinated = Score(
        metric="hallucination", status="scored", value=1.0, passed=False, verdicts=(exclude,)
    )
    made = found(turn(), faithful(claim(True), passed=True), hallucinated, sufficient(3.0, 1.0))
    assert made.cause == "passages_conflict"


def test_what_was_there_and_not_used() -> None:
    useless = Verdict(about="", kind="useful", value=False)
    used = Score(metric="context_utilization", status="scored", value=0.0, verdicts=(useless,))
    assert found(turn(), faithful(claim(False)), used, sufficient(3.0, 1.0)).cause == "ignored"


def test_what_was_added() -> None:
    verdicts = (claim(True, about="a"), claim(False, about="b"))
    made = found(turn(), faithful(*verdicts), sufficient(3.0, 1.0))
    assert (made.cause, made.claim, made.because) == ("invented", 1, "1 of 2 claims stand in no passage")


def test_an_answer_that_evades_though_it_was_there() -> None:
    assert found(turn(answer="I do not know."), sufficient(3.0, 1.0)).cause == "evasive"


def test_a_claim_of_a_metric_that_passes_is_no_cause() -> None:
    verdicts = (claim(True), claim(False, about="It is red."))
    fails = Score(metric="answer_relevancy", status="scored", value=0.1, passed=False)
    for passed, cause in ((True, "unknown"), (False, "invented")):
        scores = (faithful(*verdicts, passed=passed), fails, sufficient(4.0, 1.0))
        assert found(turn(), *scores).cause == cause


def test_what_nothing_explains_is_unknown() -> None:
    rude = Score(metric="harmfulness", status="scored", value=0.0, passed=False)
    made = found(turn(answer="A motorcycle costs 11 crowns."), rude, sufficient(3.0, 1.0))
    assert (made.cause, made.bad) == ("unknown", True)
    assert "harmfulness" in made.because


@pytest.mark.parametrize(("level", "value", "backing"), [(3.0, 1.0, "earned"), (1.0, 0.0, "lucky")])
def test_good_turns_are_earned_or_lucky(level: float, value: float, backing: str) -> None:
    made = found(
        turn(answer="It costs 11 crowns."), faithful(claim(True), passed=True), sufficient(level, value)
    )
    assert (made.bad, made.backing) == (False, backing)


def test_a_record_without_content_and_scores_has_nothing_to_go_by() -> None:
    assert diagnose(Record(), []) is None
    failed = Score.failed("faithfulness", cause="timeout", explanation="")
    assert diagnose(turn(answer="It costs 11 crowns."), [failed]) is None


def test_a_diagnosis_holds_no_content() -> None:
    made = found(turn(), faithful(claim(False)), sufficient(3.0, 1.0))
    shown = " ".join(str(value) for value in dataclasses.asdict(made).values())
    assert "crowns" not in shown
    assert "motorcycle" not in shown


def test_it_is_stored_and_read_again() -> None:
    made = found(turn(), faithful(claim(False)), sufficient(3.0, 1.0))
    written = evaluation_to_dict(Evaluation(record_id="r", scores=(), diagnosis=made))
    assert evaluation_from_dict(written).diagnosis == made
    written["diagnosis"]["cause"] = "named_by_a_newer_version"
    newer = evaluation_from_dict(written).diagnosis
    assert newer is not None
    assert newer.cause == "unknown"
