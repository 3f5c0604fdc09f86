"""How much of what a question names stands in some texts: its words, weighted by what they tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice

from steelyard.judge.words._lists import rule
from steelyard.judge.words._word import Word
from steelyard.judge.words._words import words

COMMON = 4.0
"""Words below this weight are named by no reader as what two texts share."""
_MOST_READ = 50_000
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
    return list(islice(words(question[:_MOST_READ]), 1_000))


def stems_of(texts: Sequence[str]) -> frozenset[str]:
    """The stems of all words of some texts, for `coverage`; 50,000 characters of all together are read."""
    return frozenset(word.stem for word in words("\n".join(texts)[:_MOST_READ]))
