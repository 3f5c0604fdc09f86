"""Quantifiers and certainty: all, most, few, and what may be or must be."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.checks._mismatch import Mismatch, telling
from steelyard.judge.local.words import Word, rule

_DIFFERENCES: tuple[tuple[str, str, tuple[str, ...], str, str, bool], ...] = (
    ("all", "", ("of_part",), "of_all", "the evidence does not say it of all", True),
    ("all", "except", ("all", "exception"), "", "the evidence has an exception", True),
    ("most", "", ("few",), "", "the evidence speaks of more or fewer", True),
    ("few", "", ("most_or_all",), "few", "the evidence speaks of more or fewer", True),
    ("certain", "possible", ("possible",), "certain", "the evidence is not so sure", False),
)
"""Names of rules: of which the claim has a word, and has none; of each of which the evidence has one, and of
which it has none; the difference, and whether it is the opposite. The first that fits counts."""


def other_quantity(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """The claim says more of all of them than the evidence does, or is surer of it."""
    near = _nearest(claim, lines)
    if near is None:
        return None
    ours, theirs = ({word.surface.casefold() for word in words} for words in (claim.words, near))
    for wanted, absent, there, not_there, reason, opposite in _DIFFERENCES:
        said = ours & rule(wanted) and not ours & rule(absent)
        if said and all(theirs & rule(one) for one in there) and not theirs & rule(not_there):
            return Mismatch(reason, opposite=opposite)
    return None


def _nearest(claim: Line, lines: Sequence[Line]) -> Sequence[Word] | None:
    """The clause that has most of a claim's telling words, or else the sentence, if it has half of them."""
    wanted = telling(claim.words)
    if not wanted or not lines:
        return None
    parts = [part for line in lines for part in line.clauses]
    for pool in (parts, [line.words for line in lines]):
        best = max(pool, key=lambda words: len(wanted & {word.stem for word in words}), default=[])
        if len(wanted & {word.stem for word in best}) * 2 >= len(wanted):
            return best
    return None
