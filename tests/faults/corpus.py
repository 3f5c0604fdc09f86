"""The texts that the chains search, with questions to their sentences, and questions from elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z])")
_WORD = re.compile(r"\w{4,}")


@dataclass(frozen=True)
class Passage:
    """A passage: its heading, and its sentences."""

    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """As it is stored."""
        return f"{self.title}. {' '.join(self.sentences)}"


@dataclass(frozen=True)
class Case:
    """A question, and the sentence that answers it; None for a question that no passage is about."""

    question: str
    passage: Passage | None
    answer: str
    said: str = ""
    """What a model says that read it, in words of its own."""
    wrong: str = ""
    """What a model says that alters what it read."""


@cache
def passages(name: str = "harbour") -> tuple[Passage, ...]:
    """The passages of a text."""
    return tuple(passage for passage, _ in _blocks(name))


@cache
def cases(name: str = "harbour") -> tuple[Case, ...]:
    """The questions to a text, in its order.

    A question is a line that begins with `?`. It is about the passage's sentence at its place; or, if `=` and
    `!` lines with a right and a wrong answer follow it, about the sentence that is most like both.
    """
    return tuple(case for passage, lines in _blocks(name) for case in _asked(passage, lines))


@cache
def elsewhere(name: str = "harbour") -> tuple[Case, ...]:
    """Questions that a text is not about."""
    lines = (_HERE / f"{name}-elsewhere.txt").read_text().splitlines()
    return tuple(Case(line, None, "") for line in lines)


def _blocks(name: str) -> list[tuple[Passage, list[str]]]:
    blocks = (_HERE / f"{name}.txt").read_text().split("# ")[1:]
    made = []
    for block in blocks:
        title, body, *lines = block.strip().split("\n")
        made.append((Passage(title, tuple(_SENTENCE.split(body))), lines))
    return made


def _asked(passage: Passage, lines: list[str]) -> list[Case]:
    if not any(line.startswith("=") for line in lines):
        return [Case(line[2:], passage, passage.sentences[at]) for at, line in enumerate(lines)]
    made = []
    for question, said, wrong in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        words = _words(question + said)
        sentence = max(passage.sentences, key=lambda one: len(words & _words(one)))
        made.append(Case(question[2:], passage, sentence, said[2:], wrong[2:]))
    return made


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{2,}", text.casefold()))


def likeness(query: str, text: str) -> int:
    """How many longer words two texts share, by their first five letters."""
    return len(_stems(query) & _stems(text))


def _stems(text: str) -> set[str]:
    return {word[:5] for word in _WORD.findall(text.casefold())}
