"""Passages that were guessed are shown, and not judged by unless that is asked for."""

from __future__ import annotations

from steelyard import Record, evaluate
from steelyard.metrics import AnswerRelevancy, Faithfulness
from steelyard.record import Context

GUESSED = Record(
    question="How many hills has Rome?",
    contexts=(Context(text="Rome has seven hills."),),
    contexts_source="guessed",
    answer="Rome has seven hills.",
)


def test_metrics_that_need_passages_do_not_apply_to_guessed_ones() -> None:
    (made,) = evaluate([GUESSED], metrics=[Faithfulness(), AnswerRelevancy()], progress=False)
    grounded, relevancy = made.scores
    assert (grounded.status, grounded.cause) == ("not_applicable", "contexts_guessed")
    assert relevancy.cause != "contexts_guessed"
    assert made.record is not None
    assert made.record.contexts == GUESSED.contexts


def test_guesses_are_scored_if_asked_for() -> None:
    (made,) = evaluate([GUESSED], metrics=[Faithfulness()], score_guesses=True, progress=False)
    assert made.scores[0].status == "scored"


def test_evidence_is_known_told_or_guessed() -> None:
    kinds = [
        GUESSED.replace(contexts_source=source).evidence
        for source in ("in_prompt", "retrieved", "tool", "told", "guessed")
    ]
    assert kinds == ["known", "known", "known", "told", "guessed"]
    assert GUESSED.replace(contexts=()).evidence is None
