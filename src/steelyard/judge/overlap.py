"""What texts have in common, by words weighted by what they tell.

Where a claim stands in a text, and how much of what a question names stands in some.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from steelyard.judge._word import Word, rule
from steelyard.judge._words import words
from steelyard.text import sentences

_LEAST = 0.2
"""Share of a claim that a sentence must have in common with it."""
_MOST_READ = 10_000
"""Characters of a text in which a claim is looked for by its words: a place is not worth more time."""
_MOST_COMPARED = 5_000
"""Claims times sentences that are compared; of one text that is some milliseconds."""


def locate(claim: str, text: str) -> tuple[int, int] | None:
    """The place of the sentence that carries a claim: its first character, and one past its last.

    The score of a sentence is the share of the claim's words that it has, and half the share of its own words
    that the claim has; so a short answer ("In 1879.") is found under the claim that was made of it, too.

    Returns:
        None where no sentence has enough of it, or where two different ones have the same; and in a text
        of more than 10,000 characters.
    """
    if max(len(claim), len(text)) > _MOST_READ:
        return None
    wanted = _weights(claim)
    total = sum(wanted.values())
    best, place, told = 0.0, None, False
    for start, end, found in _lines(text):
        shared = sum(gain for stem, gain in wanted.items() if stem in found)
        if not shared or shared < _LEAST * total:
            continue
        score = shared / total + 0.5 * shared / sum(found.values())
        if score > best + 1e-9:
            best, place, told = score, (start, end), True
        elif place and score > best - 1e-9 and text[start:end] != text[slice(*place)]:
            told = False
    return place if told else None


def locate_all(claims: Sequence[str], text: str) -> list[tuple[int, int] | None]:
    """The place of each of some claims; one that is a sentence of the text stands where that sentence does.

    Claims that are the same sentence are given its places in turn. In a text of more than 10,000 characters a
    claim has a place if it stands there word for word.
    """
    if len(text) > _MOST_READ:
        return _as_they_stand(claims, text)
    exact: dict[str, deque[tuple[int, int]]] = {}
    split = sentences(text)
    for one in split:
        exact.setdefault(one.text, deque()).append((one.start, one.end))
    found: list[tuple[int, int] | None] = []
    left = _MOST_COMPARED
    for claim in claims:
        places = exact.get(claim.strip())
        if places:
            found.append(places.popleft() if len(places) > 1 else places[0])
            continue
        left -= len(split)
        found.append(locate(claim, text) if left >= 0 else None)
    return found


def _as_they_stand(claims: Sequence[str], text: str) -> list[tuple[int, int] | None]:
    """Where claims stand word for word, each behind the one before if it stands there."""
    found: list[tuple[int, int] | None] = []
    at = 0
    for claim in claims:
        start = text.find(claim, at)
        start = start if start >= 0 else text.find(claim)
        found.append((start, start + len(claim)) if start >= 0 and claim else None)
        at = start + len(claim) if start >= 0 else at
    return found


@lru_cache(maxsize=64)
def _lines(text: str) -> list[tuple[int, int, dict[str, float]]]:
    return [(one.start, one.end, _weights(one.text)) for one in sentences(text)]


def _weights(text: str) -> dict[str, float]:
    return {word.stem: word.weight for word in words(text)}


COMMON = 4.0
"""Words below this weight are named by no reader as what two texts share."""
_MOST_COVERED = 50_000
"""Characters that are read; about half a microsecond each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """How much of what a question names some texts hold."""

    share: float
    """Of the telling words of the question, weighted by what they tell, in 0..1."""
    missing: tuple[str, ...] = field(repr=False)
    """The words that no text has, the most telling first."""


def coverage(asked: Iterable[Word], have: Set[str]) -> Coverage:
    """Hold the words of a question against the stems of some texts."""
    telling = [word for word in asked if word.stem not in rule("asking")]
    lacking = {word.stem: word for word in telling if word.stem not in have}
    total = sum(word.weight for word in telling)
    lost = sum(word.weight for word in telling if word.stem in lacking)
    ordered = sorted(lacking.values(), key=lambda word: -word.weight)
    return Coverage(
        share=max(0.0, 1 - lost / total) if total else 0.0,
        missing=tuple(word.surface for word in ordered if word.weight > COMMON),
    )


QuestionWords = Sequence[Word]
"""The words of a question, read."""


def question_words(question: str) -> QuestionWords:
    """The words of a question, for `coverage`; of a long one the first thousand."""
    return list(islice(words(question[:_MOST_COVERED]), 1_000))


def stems_of(texts: Sequence[str]) -> frozenset[str]:
    """The stems of all words of some texts, for `coverage`; 50,000 characters of all together are read."""
    return frozenset(word.stem for word in words("\n".join(texts)[:_MOST_COVERED]))
