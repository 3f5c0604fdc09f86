"""Whether just one of a claim and the evidence for it is negated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local._signals import share
from steelyard.judge.words._lists import fold, rule
from steelyard.judge.words._word import Word

_CLOSE = 0.6
"""Share of a claim that a sentence must have before a negation in one of the two counts."""
_TELLING = 3.5
"""Weight from which a word can be what is negated; articles, pronouns and auxiliaries are below it."""


def is_turned(claim: Line, lines: Sequence[Line], weights: Mapping[str, float]) -> bool:
    """Whether a clause of the claim denies what the evidence states, or states what it denies.

    What the evidence negates are the telling words of its negated clauses that no other clause of it has: in
    "the mill was flooded, but the church was not" that is the church.
    """
    # A table's row has no clauses, and its cells of "no" deny nothing.
    close = [line for line in lines if line.row is None and share(weights, line.stems) >= _CLOSE]
    denied, stated = set[str](), set[str]()
    for clause, at in ((clause, _negation(clause)) for line in close for clause in line.clauses):
        # What stands before "not" is what it is said of, unless nothing stands behind it.
        (stated if at is None else denied).update(_stems(clause[at or 0 :]) or _stems(clause))
    return any(_against(clause, denied, stated) for clause in claim.clauses)


def _against(clause: Sequence[Word], denied: set[str], stated: set[str]) -> bool:
    words = _stems(clause)
    if _negation(clause) is None:
        return not words.isdisjoint(denied - stated)
    return not words.isdisjoint(stated) and words.isdisjoint(denied)


def _negation(clause: Sequence[Word]) -> int | None:
    """The place of the first negation in a clause."""
    return next((at for at in range(len(clause)) if _denies(clause[at]) and _is_meant(clause, at)), None)


def _stems(words: Sequence[Word]) -> set[str]:
    return {word.stem for word in words if word.weight >= _TELLING and not _denies(word)}


def _denies(word: Word) -> bool:
    """Whether a word by itself is a negation."""
    surface = word.surface
    return (surface.casefold() if surface.isascii() else fold(surface)) in rule("negations")


def _is_meant(words: Sequence[Word], at: int) -> bool:
    """Whether what is a negation by itself is one where it stands.

    "No 5" is a number, "not only" denies nothing, and neither does the "never" of a title, nor "sin" among
    words of English.
    """
    surface, lower = words[at].surface, words[at].surface.casefold()
    after = words[at + 1].surface if at + 1 < len(words) else ""
    if (lower == "no" and after[:1].isdigit()) or after.casefold() in rule("not_only"):
        return False
    if lower in rule("ambiguous") and any(word.surface.casefold() in rule("english") for word in words):
        return False
    titled = surface[0].isupper() and not surface.isupper()
    return not titled or (at == 0 and (not after[:1].isupper() or surface in ("No", "Not")))
