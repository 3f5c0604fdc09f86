"""A difference between a claim and its evidence, and what the checks for such differences share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steelyard.judge.local._material import Line
from steelyard.judge.local.words import Word

TELLING = 4.0
"""Weight from which a word says what a clause is about."""
_SAME = 0.6
"""Share of a clause's telling words that a clause about the same thing has."""


class Mismatch(NamedTuple):
    """A difference that forbids a yes."""

    reason: str
    """What it is, in a few words."""
    opposite: bool
    """Whether the evidence says the opposite, and not only something else."""


def telling(words: Iterable[Word]) -> set[str]:
    """The stems of the words that say what a clause is about, numbers aside."""
    return {word.stem for word in words if word.weight >= TELLING and word.kind != "number"}


def is_year(word: Word) -> bool:
    """Whether a word is likely to be a year."""
    return (
        word.kind == "number" and len(word.stem) == 4 and word.stem.isdigit() and "1000" <= word.stem < "2200"
    )


def closest(clause: Sequence[Word], lines: Sequence[Line], kind: str) -> list[tuple[Line, Sequence[Word]]]:
    """The clauses with most of a clause's telling words, and their sentences; words of `kind` may differ."""
    weights = {word.stem: word.weight for word in clause if word.kind != kind and word.weight >= TELLING}
    total = sum(weights.values())
    if not total:
        return []
    scored = [
        (math.fsum(weights[word] for word in weights.keys() & {w.stem for w in part}) / total, line, part)
        for line in lines
        for part in line.clauses
    ]
    best = max((score for score, _, _ in scored), default=0.0)
    return [(line, part) for score, line, part in scored if score >= max(_SAME, best - 0.01)]
