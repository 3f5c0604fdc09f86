"""The text that the chains search, with a question to each of its sentences, and questions from elsewhere."""

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


@cache
def passages(name: str = "harbour") -> tuple[Passage, ...]:
    """The passages of a text."""
    return tuple(passage for passage, _ in _blocks(name))


@cache
def cases(name: str = "harbour") -> tuple[Case, ...]:
    """The questions to a text: one for each sentence, in its order."""
    return tuple(
        Case(question, passage, passage.sentences[at])
        for passage, questions in _blocks(name)
        for at, question in enumerate(questions)
    )


@cache
def elsewhere() -> tuple[Case, ...]:
    """Questions that the text is not about."""
    lines = (_HERE / "elsewhere.txt").read_text().splitlines()
    return tuple(Case(line, None, "") for line in lines)


def _blocks(name: str) -> list[tuple[Passage, list[str]]]:
    blocks = (_HERE / f"{name}.txt").read_text().split("# ")[1:]
    made = []
    for block in blocks:
        title, body, *questions = block.strip().split("\n")
        passage = Passage(title, tuple(_SENTENCE.split(body)))
        made.append((passage, [question.removeprefix("? ") for question in questions]))
    return made


def likeness(query: str, text: str) -> int:
    """How many longer words two texts share, by their first five letters."""
    return len(_stems(query) & _stems(text))


def _stems(text: str) -> set[str]:
    return {word[:5] for word in _WORD.findall(text.casefold())}
