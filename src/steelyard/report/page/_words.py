"""What a verdict says, in words that fit what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steelyard.scores import Verdict

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "supported": ("supported", "not supported"),
    "contradicted": ("not contradicted", "contradicted"),
    "led_astray": ("not led astray", "wrong, and from a context"),
    "noncommittal": ("to the point", "evasive"),
    "useful": ("useful", "not useful"),
    "relevant": ("relevant", "beside the question"),
    "same": ("on both sides", "only on one side"),
    "sufficient": ("sufficient", "not sufficient"),
    "named": ("named", "missing"),
}
_YES_OR_NO: Final = ("yes", "no")


def words_of(kind: str) -> tuple[str, str]:
    """What a verdict of this kind says if it speaks for the turn, and if it speaks against it."""
    return _WORDS.get(kind, _YES_OR_NO)


def verdict_words(verdict: Verdict) -> str:
    """`supported`, `not useful`, `0.75`, or why there is no verdict."""
    if verdict.value is None:
        return f"no verdict ({verdict.cause or 'unknown'})"
    if verdict.good is not None:
        return words_of(verdict.kind)[0 if verdict.good else 1]
    return f"{verdict.value:.2f}" if isinstance(verdict.value, float) else str(verdict.value)
