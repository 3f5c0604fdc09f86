"""Quantifiers and certainty: all, most, few, and what may be or must be."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.turns._turn import Turn, telling
from steelyard.judge.local.words import Word

_ALL = frozenset(
    {"all", "every", "each", "always", "everyone", "everybody", "everything", "entirely", "alle"}
)
_MOST = frozenset({"most", "mostly", "majority", "usually"})
_FEW = frozenset({"few", "rarely", "seldom", "hardly", "scarcely"})
_SOME = frozenset({"some", "several", "sometimes", "may", "might", "partly", "few", "occasionally", "only"})
_EXCEPT = frozenset({"except", "but", "only", "without"})
_CERTAIN = frozenset({"certainly", "definitely", "always", "must", "prove", "proves", "proved", "surely"})
_POSSIBLE = frozenset(
    {"may", "might", "probably", "perhaps", "possibly", "suggest", "suggests", "can", "could"}
)

_NONE = frozenset[str]()
_OF_ALL = _ALL | {"any", "no", "none"}
_OF_PART = _SOME | _MOST | _FEW | {"half"}

_DIFFERENCES = (
    (_ALL, _NONE, (_OF_PART,), _OF_ALL, "the evidence does not say it of all", True),
    (_ALL, _EXCEPT, (_ALL, frozenset({"except"})), _NONE, "the evidence has an exception", True),
    (_MOST, _NONE, (_FEW,), _NONE, "the evidence speaks of more or fewer", True),
    (_FEW, _NONE, (_MOST | _ALL,), _FEW, "the evidence speaks of more or fewer", True),
    (_CERTAIN, _POSSIBLE, (_POSSIBLE,), _CERTAIN, "the evidence is not so sure", False),
)
"""What the claim says and what it does not; what the evidence says (of each set a word) and what it does not;
the difference, and whether it is the opposite. The first that fits counts."""


def other_quantity(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The claim says more of all of them than the evidence does, or is surer of it."""
    near = _nearest(claim, lines)
    if near is None:
        return None
    ours, theirs = ({word.surface.casefold() for word in words} for words in (claim.words, near))
    for wanted, absent, there, not_there, reason, opposite in _DIFFERENCES:
        if ours & wanted and all(theirs & one for one in there) and not (ours & absent or theirs & not_there):
            return Turn(reason, opposite=opposite)
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
