"""Where a claim stands in a text: the sentence that shares most of its words, weighted by what they tell."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache

from steelyard.judge.words._words import words
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

    Args:
        claim: A sentence, or a claim that was extracted from the text or is checked against it.
        text: Where to look.

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

    Args:
        claims: Claims, in the order of the text.
        text: The text that they were taken from.
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
