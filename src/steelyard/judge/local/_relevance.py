"""Whether a sentence bears on a question: its words, and whether it has what the question asks for."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from steelyard.judge.local._material import Line, Text
from steelyard.judge.local._vectors import nearest
from steelyard.text import spread


@dataclass(frozen=True, kw_only=True, slots=True)
class Relevance:
    """How a sentence bears on a question."""

    score: float
    """In 0..1."""
    reason: str
    """A few words for people."""


_MOST_LINES = 50
"""Sentences of a statement that are held against the question, evenly spread over it if there are more."""
_ASKING_WORDS = """
who whom whose what which when where why how do be have can could would should will tell giv explain describ
"""
_ASKING = frozenset(_ASKING_WORDS.split())
_NUMBER_ASKED = (
    "when",
    "how many",
    "how much",
    "how old",
    "how long",
    "how far",
    "how high",
    "what year",
    "which year",
    "what date",
)
_NAME_ASKED = ("who", "whom", "whose", "where", "which")


def relevance(asked: Text, said: Text, *, alone: bool) -> Generator[None, None, Relevance]:
    """Hold a sentence against a question.

    The score is the share of the question's telling words that the sentence has, or has something similar to,
    averaged with their cosine. A sentence that brings the number or name asked for gets half of what is
    missing.

    Args:
        asked: The question.
        said: The sentence.
        alone: Whether the number or name may stand alone, as in the answer "In 1879."; where it does not,
            the sentence must have something of the question too.
    """
    if not asked.lines or not said.lines:
        return Relevance(score=0.0, reason="there are no words to compare")
    # The longest sentence of a message asks; "Hello!" and "Thanks." stand around it.
    question = max(asked.lines, key=lambda line: len(line.words))
    best: tuple[float, list[str]] = (0.0, [])
    for line in spread(said.lines, _MOST_LINES):
        yield
        best = max(best, _score(question, line), key=lambda pair: pair[0])
    wanted = _wanted(asked.text.casefold())
    new = [
        word
        for line in said.lines
        for word in line.words
        if word.kind == wanted and word.stem not in asked.stems
    ]
    score, shared = best
    # A number of another topic is not an answer.
    if new and (alone or score >= _TOUCHES):
        score += (1 - score) / 2
    words = f"shares {', '.join(shared[:5])}" if shared else "shares no telling word"
    return Relevance(
        score=min(1.0, max(0.0, score)),
        reason=f"{words}; has {new[0].surface!r} where a {wanted} is asked for" if new else words,
    )


def _wanted(question: str) -> str:
    if any(phrase in question for phrase in _NUMBER_ASKED):
        return "number"
    return "name" if any(f"{word} " in question for word in _NAME_ASKED) else ""


def _score(question: Line, line: Line) -> tuple[float, list[str]]:
    telling = [(place, word) for place, word in enumerate(question.words) if word.stem not in _ASKING]
    if not telling:
        return max(0.0, float(question.mean @ line.mean)), []
    likest = nearest(question.vectors, line.vectors).tolist()
    total = sum(word.weight for _, word in telling)
    found = (
        sum(word.weight * (1.0 if word.stem in line.stems else likest[place]) for place, word in telling)
        / total
    )
    shared = [word.surface for _, word in telling if word.stem in line.stems and word.weight > _COMMON]
    return (found + max(0.0, float(question.mean @ line.mean))) / 2, shared


_TOUCHES = 0.25
"""Score from which a sentence has to do with the question."""
# Words below this weight are named by no reader as what two texts share.
_COMMON = 4.0
