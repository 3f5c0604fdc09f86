"""Opposites: the evidence has "fewer" where the claim has "more"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.checks._mismatch import Mismatch
from steelyard.judge.local.words import lists, stem


def other_word(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """The evidence lacks a word of the claim, and has its opposite, which the claim lacks."""
    there = frozenset[str]().union(*(line.stems for line in lines))
    for word in claim.words:
        against = _opposites().get(word.stem, frozenset()) & (there - claim.stems)
        if against and word.stem not in there:
            return Mismatch(f"{word.surface!r} against {min(against)!r}", opposite=True)
    return None


@cache
def _opposites() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for pair in lists().opposites:
        one, other = map(stem, pair)
        table[one] = table.get(one, frozenset()) | {other}
        table[other] = table.get(other, frozenset()) | {one}
    return table
