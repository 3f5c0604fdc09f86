"""What a claim adds to what is copied otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from steelyard.judge.local._material import Line
from steelyard.judge.local._vectors import nearest
from steelyard.judge.local.verifying.turns._turn import Turn, telling
from steelyard.judge.local.words import Word

_COPIED = 0.8
"""Share of a clause's telling words from which it was copied rather than reworded."""
_LONGEST = 80
"""Words of a sentence that are aligned: the time goes with the square of their number."""
_MATCHED = 0.7
"""Share of a claim's telling words that must stand in the sentence in the same order."""
_RARE = 5.0
"""Weight from which a word says something of its own."""
_ARTICLES = frozenset({"a", "an", "the", "his", "her", "its", "their", "our", "and"})
_PREPOSITIONS = frozenset(
    {"by", "in", "on", "at", "with", "for", "from", "through", "during", "under", "near", "after", "behind"}
)
_ALIKE = 0.35
"""Cosine with a word of the sentence from which an added word only says the same again."""


def added(claim: Line, known: frozenset[str]) -> Turn | None:
    """Where the rest is in the evidence, a clause of which nothing is there was added."""
    parts = [(clause, telling(clause)) for clause in claim.clauses]
    parts = [(clause, words) for clause, words in parts if words]
    if len(parts) < 2:
        return None
    shares = [len(words & known) / len(words) for _, words in parts]
    # Only of what is copied otherwise: where the wording is free, other words are not an addition.
    if sorted(shares)[1] < _COPIED:
        return None
    for (clause, words), share in zip(parts, shares, strict=True):
        if share == 0 and len(words) > 1:
            return _not_there(clause[:6])
    return None


def inserted(claim: Line, lines: Sequence[Line], known: frozenset[str]) -> Turn | None:
    """Words stand among those of a sentence that has nothing else in their place."""
    wanted = telling(claim.words)
    if len(wanted) < 3 or wanted <= known or len(claim.words) > _LONGEST:
        return None
    line = max(lines, key=lambda line: len(wanted & line.stems))
    if len(line.words) > _LONGEST or line.row is not None:
        return None
    for first, last in _put_in(claim, line, wanted):
        new = [at for at in range(first, last) if _is_new(claim.words[at], known)]
        if (
            new
            and _attributes(claim.words, first, last)
            and nearest(claim.vectors[new], line.vectors).min() < _ALIKE
        ):
            return _not_there(claim.words[first:last][:6])
    return None


def _put_in(claim: Line, line: Line, wanted: set[str]) -> list[tuple[int, int]]:
    """Where the claim has words for which a sentence, of which the rest is a copy, has nothing telling."""
    ours, theirs = [word.stem for word in claim.words], [word.stem for word in line.words]
    steps = SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes()
    matched = {word for kind, _, _, first, last in steps if kind == "equal" for word in ours[first:last]}
    if len(wanted & matched) < _MATCHED * len(wanted):
        return []
    return [
        (first, last)
        for kind, begin, end, first, last in steps
        if first > 0 and kind in ("insert", "replace") and not telling(line.words[begin:end])
    ]


def _is_new(word: Word, known: frozenset[str]) -> bool:
    """Whether a word brings something; how sure or how often is said by adverbs and left to other checks."""
    lower = word.surface.casefold()
    return word.kind != "number" and word.weight >= _RARE and word.stem not in known and lower[-2:] != "ly"


def _attributes(words: Sequence[Word], first: int, last: int) -> bool:
    """Whether some words add a circumstance or a quality: after a preposition, or before a noun."""
    opening = words[first].surface.casefold()
    before = words[first - 1].surface.casefold()
    return (
        opening in _PREPOSITIONS
        or before in _PREPOSITIONS
        or (before in _ARTICLES and last < len(words))
        or (opening in _ARTICLES and last < len(words) and last - first > 1)
    )


def _not_there(words: Sequence[Word]) -> Turn:
    return Turn(f"{' '.join(word.surface for word in words)!r} is not in the evidence", opposite=False)
