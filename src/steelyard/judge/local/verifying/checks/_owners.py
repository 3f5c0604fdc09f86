"""Owners: another name where the evidence speaks of the same thing."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.checks._mismatch import Mismatch, closest, telling
from steelyard.judge.local.words import Word, rule

_ABOUT = 2
"""Telling words beside its names from which a clause can be told from others."""


def other_owner(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """A clause about the same thing has another name in it, and none has one of the claim's.

    A clause without a subject has that of its sentence: "and sold it to her son".
    """
    # What opens the claim may be known for a name by how the evidence writes it.
    evident = {word.stem for line in lines for word in line.words if word.kind == "name"}
    for clause in claim.clauses:
        names = {word.stem: word for word in clause if word.kind == "name" or word.stem in evident}
        if not names or len(telling(clause) - names.keys()) < _ABOUT:
            continue
        near = closest(clause, lines, "name")
        there = next((word for _, part in near for word in part if word.kind == "name"), None)
        if there and not names.keys() & _said(near):
            name = next(iter(names.values()))
            return Mismatch(f"{name.surface!r} where it has {there.surface!r}", opposite=False)
    return None


def _said(near: Sequence[tuple[Line, Sequence[Word]]]) -> set[str]:
    """The stems of some clauses, with what may be their subjects and stands in other clauses."""
    said = {word.stem for _, part in near for word in part}
    for line, part in near:
        # A clause that begins with a name or an article has a subject of its own; with it belong the clauses
        # of names alone: the further ones of "Ada Quist, Ben Ruiz and Carla Nyman".
        if part[0].kind == "name" or part[0].surface.casefold() in rule("articles"):
            bare = [one for one in line.clauses if all(word.kind == "name" for word in one)]
            said |= {word.stem for one in bare for word in one}
        else:
            said |= line.stems
    return said
