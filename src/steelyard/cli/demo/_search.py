"""Finding passages: Okapi BM25 over a text that fits in memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from steelyard.cli.demo._text import Passage
from steelyard.cli.demo._words import words

_K1 = 1.2  # the usual values of BM25
_B = 0.75  # as above


class Index:
    """Passages with their words counted.

    Source of the formula: Robertson & Zaragoza, The Probabilistic Relevance Framework (2009), section 3.5.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._entries = [(entry, Counter(words(f"{entry.title} {entry.text}"))) for entry in passages]
        self._average = sum(counts.total() for _, counts in self._entries) / len(self._entries)

    def search(self, query: str, *, most: int) -> list[tuple[float, Passage]]:
        """The best passages and their scores, best first; none that shares no word with the query."""
        asked = dict.fromkeys(words(query))
        rarity = {word: self._rarity(word) for word in asked}
        scored = [(self._score(rarity, counts), entry) for entry, counts in self._entries]
        return [pair for pair in sorted(scored, key=lambda pair: -pair[0])[:most] if pair[0] > 0]

    def _score(self, rarity: dict[str, float], counts: Counter[str]) -> float:
        damping = _K1 * (1 - _B + _B * counts.total() / self._average)
        return sum(
            weight * counts[word] * (_K1 + 1) / (counts[word] + damping) for word, weight in rarity.items()
        )

    def _rarity(self, word: str) -> float:
        holding = sum(word in counts for _, counts in self._entries)
        return math.log(1 + (len(self._entries) - holding + 0.5) / (holding + 0.5))
