"""Suspicion: cheap signs that a turn went badly, so that such turns are judged more often."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from steelyard.online.selection._sampling import checked_rate
from steelyard.record import Record

_WORDS = re.compile(r"\w{3,}")
_READ = 20_000  # characters: picking must stay cheap beside judging
_REFUSAL = re.compile(
    r"\b(i('m| am) (sorry|unable|not able|afraid)|i (can(no|')t|do(n't| not) know|could not find)"
    r"|(no|not enough|insufficient) (information|context)|cannot (answer|be answered)|as an ai\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspicion:
    """Signs of a bad turn, and the rate at which turns with at least one of them are judged.

    The signs are `disliked` (negative feedback), `no_context`, `low_overlap`, `low_retrieval_score`,
    `no_retrieval_score`, `refusal` (English wordings), `short_answer` and `upstream_error` (a turn that
    came to an end although the recorder noted an error on the way). None of them is a verdict: they only say
    where to look more often, and the inclusion probability on the Score takes the leaning out of averages.
    """

    rate: float = 1.0
    """The rate of suspicious turns; others keep theirs."""
    min_overlap: float | None = 0.3
    """Share of the answer's words that also stand in a context; below it is a sign. None: no sign."""
    min_retrieval_score: float | None = None
    """The best context's retrieval score below this is a sign, on the retriever's own scale."""
    need_retrieval_score: bool = False
    """Whether contexts without any retrieval score are a sign."""
    min_answer_words: int = 3
    """An answer of fewer words is a sign; 0 for no sign."""
    refusals: bool = True
    """Whether an answer that reads like a refusal is a sign."""

    def __post_init__(self) -> None:
        checked_rate(self.rate, "the rate of Suspicion")

    def signs(self, record: Record, *, disliked: bool = False) -> tuple[str, ...]:
        """The signs that a turn shows."""
        checks = {
            "disliked": disliked,
            "no_context": not record.contexts,
            "low_overlap": self._overlaps_little(record),
            "low_retrieval_score": self._scored_low(record),
            "no_retrieval_score": self.need_retrieval_score
            and bool(record.contexts)
            and all(context.score is None for context in record.contexts),
            "refusal": self.refusals and _REFUSAL.search(record.answer[:500]) is not None,
            "short_answer": len(record.answer.split(maxsplit=self.min_answer_words)) < self.min_answer_words,
            "upstream_error": record.error is not None or any("error" in note for note in record.notes),
        }
        return tuple(name for name, shown in checks.items() if shown)

    def _overlaps_little(self, record: Record) -> bool:
        if self.min_overlap is None or not record.contexts:
            return False
        said = _words([record.answer])
        read = _words(context.text for context in islice(record.contexts, 50))
        return bool(said) and len(said & read) < self.min_overlap * len(said)

    def _scored_low(self, record: Record) -> bool:
        scores = [context.score for context in record.contexts if context.score is not None]
        return (
            self.min_retrieval_score is not None and bool(scores) and max(scores) < self.min_retrieval_score
        )


def _words(texts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    left = _READ
    for text in texts:
        found.update(word.lower() for word in _WORDS.findall(text[:left]))
        left -= len(text)
        if left <= 0:
            break
    return found
