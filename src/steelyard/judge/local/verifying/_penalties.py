"""What a claim has that the texts do not have or say otherwise: numbers, names, negations, opposites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from steelyard.judge.local._material import Line, Text
from steelyard.judge.local.verifying._finding import Penalties
from steelyard.judge.local.verifying._opposites import TELLING, negates, opposites
from steelyard.judge.local.verifying._signals import share
from steelyard.judge.local.words import Word

_CLOSE = 0.6
"""Share of a claim that a sentence must have before a negation in one of the two counts."""
_OF_THINGS = frozenset({"no", "without", "ohne", "sans", "sin", "senza", "sem"})
"""Words that negate what follows them and not the sentence they stand in."""


def penalties(
    claim: Line,
    lines: Sequence[Line],
    texts: Sequence[Text],
    weights: Mapping[str, float],
    known: frozenset[str],
) -> Penalties:
    """What must not differ and does.

    Args:
        claim: The claim.
        lines: The sentences of the window.
        texts: Everything that the claim is held against.
        weights: The claim's stems and what they tell.
        known: The stems of the texts.
    """
    stems = frozenset[str]().union(*(line.stems for line in lines))
    return Penalties(
        missing_numbers=_missing_numbers(claim, texts, known),
        missing_names=_missing_names(claim, texts, known),
        negation_flip=_negation_flip(claim, lines, weights),
        antonym_flip=_antonym_flip(claim, stems),
    )


def _missing(claim: Line, kind: str, known: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(word.surface for word in claim.words if word.kind == kind and word.stem not in known)
    )


def _missing_numbers(claim: Line, texts: Sequence[Text], known: frozenset[str]) -> tuple[str, ...]:
    """Numbers that the texts do not have; a bare number may be one of a quantity, and the other way round."""
    raw = frozenset[str]().union(*(text.raw for text in texts))
    return tuple(
        dict.fromkeys(
            word.surface
            for word in claim.words
            if word.kind == "number"
            and word.stem not in known
            and not (word.raw in known if word.raw else word.stem in raw)
        )
    )


def _missing_names(claim: Line, texts: Sequence[Text], known: frozenset[str]) -> tuple[str, ...]:
    """Names that the texts do not have, neither in full nor as the initials of neighbouring names."""
    missing = _missing(claim, "name", known)
    if not any(_is_acronym(name) for name in missing):
        return missing
    initials = {"".join(run) for text in texts for line in text.lines for run in _capitals(line)}
    return tuple(name for name in missing if not any(name.replace(".", "") in run for run in initials))


def _is_acronym(name: str) -> bool:
    return 2 <= len(name.replace(".", "")) <= 6 and name.isupper()


def _capitals(line: Line) -> list[list[str]]:
    """Initials of each run of capitalised words, little words skipped: `Bank of England`."""
    runs: list[list[str]] = [[]]
    for word in line.words:
        if word.surface[0].isupper():
            runs[-1].append(word.surface[0])
        elif len(word.surface) > 3:
            runs.append([])
    return runs


def _negation_flip(claim: Line, lines: Sequence[Line], weights: Mapping[str, float]) -> bool:
    """Whether just one of a clause of the claim and what the evidence says of the same is negated.

    What the evidence negates are the telling words of its negated clauses that no other clause of it has: in
    "the mill was flooded, but the church was not" that is the church.
    """
    close = [line for line in lines if share(weights, line.stems) >= _CLOSE]
    parts = [part for line in close for part in line.clauses]
    denied = _stems_of(_negated(part) for part in parts if negates(part))
    stated = _stems_of(part for part in parts if not negates(part))
    for clause in claim.clauses:
        words = _stems_of([clause])
        if negates(clause):
            if words & stated and not words & denied:
                return True
        elif words & (denied - stated):
            return True
    return False


def _negated(clause: Sequence[Word]) -> Sequence[Word]:
    """What a clause negates: all of it, or what follows a "no" or "without" that only denies a thing."""
    first = next(index for index, word in enumerate(clause) if negates([word]))
    return clause[first:] if clause[first].surface.lower() in _OF_THINGS else clause


def _stems_of(clauses: Iterable[Sequence[Word]]) -> set[str]:
    """The telling words of some clauses, negations aside."""
    return {w.stem for part in clauses for w in part if w.weight >= TELLING and not negates([w])}


def _antonym_flip(claim: Line, stems: frozenset[str]) -> tuple[str, str] | None:
    """A word of the claim that the window lacks while it has the opposite."""
    for word in claim.words:
        if word.stem not in stems:
            for opposite in sorted(opposites(word.stem) - claim.stems):
                if opposite in stems:
                    return (word.surface, opposite)
    return None
