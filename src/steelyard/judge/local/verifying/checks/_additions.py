"""Additions: a clause of which the evidence has nothing, beside clauses that were copied from it."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.checks._mismatch import Mismatch, telling

_COPIED = 0.8
"""Share of a clause's telling words from which it was copied rather than reworded."""


def added(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """Where the rest is in the evidence, a clause of which nothing is there was added."""
    parts = [(clause, words) for clause in claim.clauses if (words := telling(clause))]
    if len(parts) < 2:
        return None
    there = frozenset[str]().union(*(line.stems for line in lines))
    shares = [len(words & there) / len(words) for _, words in parts]
    # Only of what is copied otherwise: if the wording is free, other words are not an addition.
    if sorted(shares)[1] < _COPIED:
        return None
    for (clause, words), share in zip(parts, shares, strict=True):
        if share == 0 and len(words) > 1:
            shown = " ".join(word.surface for word in clause[:6])
            return Mismatch(f"{shown!r} is not in the evidence", opposite=False)
    return None
