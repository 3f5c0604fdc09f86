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


def other_quantity(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The claim says more of all of them than the evidence does, or is surer of it."""
    near = _nearest(claim, lines)
    if near is None:
        return None
    ours, theirs = ({word.surface.casefold() for word in words} for words in (claim.words, near))
    if (
        ours & _ALL
        and not theirs & (_ALL | {"any", "no", "none"})
        and theirs & (_SOME | _MOST | _FEW | {"half"})
    ):
        return Turn("the evidence does not say it of all", opposite=True)
    if ours & _ALL and not ours & _EXCEPT and theirs & _ALL and theirs & {"except"}:
        return Turn("the evidence has an exception", opposite=True)
    if (ours & _MOST and theirs & _FEW) or (ours & _FEW and theirs & (_MOST | _ALL) and not theirs & _FEW):
        return Turn("the evidence speaks of more or fewer", opposite=True)
    if ours & _CERTAIN and theirs & _POSSIBLE and not theirs & _CERTAIN and not ours & _POSSIBLE:
        return Turn("the evidence is not so sure", opposite=False)
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
