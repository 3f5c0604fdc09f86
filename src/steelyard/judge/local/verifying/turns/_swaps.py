"""Swaps: the right words with the wrong partner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.turns._turn import TELLING, Turn, around
from steelyard.judge.local.words import Word

_MOST = 8
"""Clauses that are compared pair by pair."""
_PASSIVE = frozenset({"by", "from", "von", "par", "por", "da"})
_CIRCUMSTANCES_WORDS = """
on in at during after before with for since until as when from by to
"""
_CIRCUMSTANCES = frozenset(_CIRCUMSTANCES_WORDS.split())
_SHORT = 14
"""Words of a clause in which one verb is likely to stand between two sides."""


def crossed(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """Two clauses of the claim have their words from two clauses of the evidence, crosswise.

    "The rye loaf is pale and the spelt loaf is dark" against "the rye loaf is dark, the spelt loaf pale".
    """
    ours = [part for part in map(around, claim.clauses) if part][:_MOST]
    if len(ours) < 2:
        return None
    wanted = set[str]().union(*ours)
    theirs = [around(part) for line in lines for part in line.clauses]
    theirs = [part for part in theirs if part & wanted][:_MOST]
    for one, other in combinations(ours, 2):
        left, right = one - other, other - one
        if any(left <= part or right <= part for part in theirs):
            continue
        if any(
            _mixes(left, right, first - second, second - first) for first, second in combinations(theirs, 2)
        ):
            return Turn("what is said of one thing is said of another", opposite=True)
    return None


def _mixes(left: set[str], right: set[str], first: set[str], second: set[str]) -> bool:
    """Whether each of two sets has something of both others, and the others have nothing else to bring."""
    mixed = left & first and left & second and right & first and right & second
    return bool(mixed) and left | right <= first | second


def other_side(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The same words on the other side of what stands between them: "larvae feed workers"."""
    for clause in claim.clauses:
        ours = _sides(clause)
        if len(ours) < 3:
            continue
        for line in lines:
            for part in line.clauses:
                theirs = [stem for stem in _sides(part) if stem in ours]
                if _inverted(ours, theirs) and _passive(clause) == _passive(part):
                    return Turn(f"{ours[0]!r} and {ours[-1]!r} have changed sides", opposite=True)
    return None


def _sides(clause: Sequence[Word]) -> list[str]:
    """The telling words of a short clause in order, if it begins with them and not with "on" or "in"."""
    if len(clause) > _SHORT or clause[0].surface.casefold() in _CIRCUMSTANCES:
        return []
    return list(
        dict.fromkeys(word.stem for word in clause if word.weight >= TELLING and word.kind != "number")
    )


def _inverted(ours: list[str], theirs: list[str]) -> bool:
    """Whether the first and the last have changed places around a word that both have between them."""
    if len(theirs) < 3 or set(theirs) != set(ours):
        return False
    return theirs.index(ours[0]) > theirs.index(ours[-1]) and any(
        theirs.index(ours[-1]) < theirs.index(stem) < theirs.index(ours[0]) for stem in ours[1:-1]
    )


def _passive(clause: Sequence[Word]) -> bool:
    return any(word.surface.casefold() in _PASSIVE for word in clause)
