"""Causes: what a claim calls the cause of what, and what the evidence does."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.turns._turn import Turn, around, shared
from steelyard.judge.local.words import Word

_BECAUSE = frozenset({"because", "weil", "parce", "porque", "perché", "omdat", "due"})
_OPENERS = frozenset({"because", "when", "since", "as", "if", "weil", "wenn", "comme", "como"})


def other_cause(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The claim's cause is the effect of the evidence, or another one, or is not in it at all."""
    said = _causes(claim)
    if said is None:
        return None
    cause, effect = said
    for line in lines:
        told = _causes(line)
        if told is None:
            continue
        same = shared(cause, told[0]) + shared(effect, told[1])
        swapped = shared(cause, told[1]) + shared(effect, told[0])
        if swapped > same and swapped >= 1:
            return Turn("cause and effect are the other way round", opposite=True)
        if told[0] and shared(effect, told[1]) >= _SAME and not cause & line.stems:
            return Turn("the evidence has another cause", opposite=False)
    there = frozenset[str]().union(*(line.stems for line in lines))
    if cause and len(cause & there) / len(cause) < 0.5:
        return Turn("the cause is not in the evidence", opposite=False)
    return None


_SAME = 0.5
"""Share of an effect's words from which it is the same effect."""


def _causes(line: Line) -> tuple[set[str], set[str]] | None:
    """What a sentence calls the cause, and what the effect."""
    surfaces = [word.surface.casefold() for word in line.words]
    for place, surface in enumerate(surfaces):
        if surface in _BECAUSE and place > 0:
            return _apart(line.words[place + 1 :], line.words[:place])
    if surfaces[:1] and surfaces[0] in _OPENERS and len(line.words) > 5:
        parts = [part for part in line.clauses if len(part) > 1]
        if len(parts) > 1:
            return _apart(parts[0], [word for part in parts[1:] for word in part])
        # Without a comma the middle is the best guess: each side is compared as a whole.
        half = len(line.words) // 2
        return _apart(line.words[1:half], line.words[half:])
    return None


def _apart(cause: Sequence[Word], effect: Sequence[Word]) -> tuple[set[str], set[str]]:
    one, other = around(cause), around(effect)
    return one - other, other - one
