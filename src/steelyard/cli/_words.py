"""Scores in words: the verdict that weighs most against an answer, counts, and texts cut to fit a line."""

from __future__ import annotations

from typing import Any

from steelyard.scores import Score, Verdict


def worst_verdict(score: Score) -> Verdict | None:
    """The verdict that weighs most against the record; None where none does.

    Of yes/no verdicts it is the one the judge was surest of; of ratings and similarities the lowest.
    """
    against = [verdict for verdict in score.verdicts if verdict.good is False]
    if against:
        return min(against, key=_probability_of_good)
    numbers = [
        v for v in score.verdicts if isinstance(v.value, float | int) and not isinstance(v.value, bool)
    ]
    return min(numbers, key=lambda verdict: float(verdict.value or 0), default=None)


def _probability_of_good(verdict: Verdict) -> float:
    return 0.5 if verdict.probability_of_good is None else verdict.probability_of_good


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun.

    >>> counted(1, "record"), counted(1200, "record"), counted(2, "reply", "replies")
    ('1 record', '1,200 records', '2 replies')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def amount(value: Any) -> str:
    """A score with two decimals, or a dash where there is none."""
    return "-" if value is None else f"{value:.2f}"
