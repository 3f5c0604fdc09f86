"""Whether a sentence bears on a question: its words, and whether it has what the question asks for."""

from __future__ import annotations

import re
from collections.abc import Generator

from steelyard.judge.embed._static import nearest
from steelyard.judge.local._material import Line, ReadText
from steelyard.judge.overlap import COMMON
from steelyard.judge.words._word import Word, rule
from steelyard.text import spread

_MOST_LINES = 50
"""Sentences of a statement that are held against the question, evenly spread over it if there are more."""
_TOUCHES = 0.25
"""Score from which a sentence has to do with the question."""
_WANTED = re.compile(
    r"(?P<number>when|how (?:many|much|old|long|far|high)|(?:what|which) year|what date)"
    r"|(?P<name>\b(?:who|whom|whose|where|which) )"
)
"""What asks for a number, or for a name."""


def relevance(asked: ReadText, said: ReadText, *, alone: bool) -> Generator[None, None, tuple[float, str]]:
    """Hold a sentence against a question.

    The score is the share of the question's telling words that the sentence has, or has something similar to,
    averaged with their cosine. A sentence that brings the number or name asked for gets half of what is
    missing.

    `alone` where it may be all there is, as in the answer "In 1879."
    """
    if not asked.lines or not said.lines:
        return 0.0, "there are no words to compare"
    # The longest sentence of a message asks; "Hello!" and "Thanks." stand around it.
    question = max(asked.lines, key=lambda line: len(line.words))
    best: tuple[float, list[str]] = (0.0, [])
    question.look_up()
    for line in spread(said.lines, _MOST_LINES):
        yield
        line.look_up()
        yield
        best = max(best, _score(question, line), key=lambda pair: pair[0])
    score, shared = best
    reason = f"shares {', '.join(shared[:5])}" if shared else "shares no telling word"
    # A number of another topic is not an answer.
    if (new := _brought(asked, said)) and (alone or score >= _TOUCHES):
        score += (1 - score) / 2
        reason += f"; has {new.surface!r} where a {new.kind} is asked for"
    return min(1.0, max(0.0, score)), reason


def _brought(asked: ReadText, said: ReadText) -> Word | None:
    """The first number or name that a sentence brings where the question asks for one; numbers go first."""
    wanted = max((match.lastgroup or "" for match in _WANTED.finditer(asked.text.casefold())), default="")
    words = (word for line in said.lines for word in line.words)
    return next((word for word in words if word.kind == wanted and word.stem not in asked.stems), None)


def _score(question: Line, line: Line) -> tuple[float, list[str]]:
    telling = [(place, word) for place, word in enumerate(question.words) if word.stem not in rule("asking")]
    if not telling:
        return max(0.0, float(question.mean @ line.mean)), []
    likest = nearest(question.vectors, line.vectors).tolist()
    total = sum(word.weight for _, word in telling)
    found = (
        sum(word.weight * (1.0 if word.stem in line.stems else likest[place]) for place, word in telling)
        / total
    )
    shared = [word.surface for _, word in telling if word.stem in line.stems and word.weight > COMMON]
    return (found + max(0.0, float(question.mean @ line.mean))) / 2, shared
