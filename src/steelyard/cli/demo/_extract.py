"""Answering by quotation: the sentence of the passages that fits the question best, or nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from steelyard.cli.demo._words import words
from steelyard.text import sentences

DONT_KNOW = "I do not know."
"""What the extractive model says when no passage fits."""

_FITS = 0.5
_AS_GOOD = 0.85
_BESIDE = 0.5


def best_sentences(question: str, passages: Sequence[str], *, most: int = 2) -> str:
    """Quote the sentence that holds most of what the question asks about.

    A word counts for more the fewer sentences have it, and for half where it stands only in the rest of the
    passage (its heading, a sentence before). Where less than half of the question is met, nothing fits.

    Args:
        question: What is asked.
        passages: Where to look, each with its heading on a line of its own.
        most: How many sentences to quote from the best passage, if they fit nearly as well as the best.
    """
    found = [
        (sentence.text, set(words(sentence.text)), set(words(passage)), index)
        for index, passage in enumerate(passages)
        for sentence in sentences(passage.partition("\n")[2])
    ]
    asked = dict.fromkeys(words(question))
    rarity = {word: _rarity(sum(word in own for _, own, _, _ in found), len(found)) for word in asked}
    if not found or not rarity:
        return DONT_KNOW
    fits = [(_fit(rarity, own, around), text, index) for text, own, around, index in found]
    best, _, place = max(fits, key=lambda entry: entry[0])
    if best < _FITS:
        return DONT_KNOW
    good = [text for value, text, index in fits if index == place and value >= _AS_GOOD * best]
    return " ".join(good[:most])


def _fit(rarity: Mapping[str, float], own: set[str], around: set[str]) -> float:
    """How much of a question a sentence meets, by its words and by those of its passage."""
    met = sum(weight * (1 if word in own else _BESIDE * (word in around)) for word, weight in rarity.items())
    return met / sum(rarity.values())


def _rarity(holding: int, total: int) -> float:
    return math.log(1 + (total + 1) / (holding + 0.5))
