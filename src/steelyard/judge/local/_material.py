"""Texts made ready for the verifier: sentences, words and vectors; kept, so that nothing is read twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.judge.local._text import Word, words
from steelyard.judge.local._vectors import Vectors
from steelyard.text import sentences

if TYPE_CHECKING:
    from steelyard.judge.local._vectors import Matrix

__all__ = ["Line", "Memory", "Steps", "Text", "prepare"]


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One sentence, read."""

    start: int
    """First character in its text."""
    end: int
    """One past its last character."""
    words: tuple[Word, ...]
    stems: frozenset[str]
    vectors: Matrix
    """Unit vector of each word."""
    mean: Matrix
    """The sentence's unit vector: the mean of its words', weighted by what they tell."""


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A text, read."""

    text: str
    lines: tuple[Line, ...]
    stems: frozenset[str]


Steps = Generator[None, None, Text]
"""Work in slices of well under a millisecond: whoever drives it may do something else at every `yield`."""


def prepare(text: str, vectors: Vectors) -> Steps:
    """Read a text, sentence by sentence."""
    import numpy as np

    lines: list[Line] = []
    for sentence in sentences(text):
        yield
        found = words(sentence.text)
        if not found:
            continue
        matrix = vectors.words([word.surface for word in found])
        mean = np.array([word.weight for word in found], np.float32) @ matrix
        length = float(np.linalg.norm(mean))
        lines.append(
            Line(
                start=sentence.start,
                end=sentence.end,
                words=tuple(found),
                stems=frozenset(word.stem for word in found),
                vectors=matrix,
                mean=mean / length if length else mean,
            )
        )
    return Text(text, tuple(lines), frozenset().union(*(line.stems for line in lines)))


class Memory:
    """The texts read last. The questions about a record, and often the next record, share them."""

    def __init__(self, *, characters: int = 400_000) -> None:
        self._room = characters
        self._used = 0
        self._texts: OrderedDict[str, Text] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, texts: Sequence[str], vectors: Vectors) -> Generator[None, None, list[Text]]:
        """Read some texts, or remember them."""
        found: list[Text] = []
        for text in texts:
            with self._lock:
                known = self._texts.get(text)
                if known is not None:
                    self._texts.move_to_end(text)
            if known is None:
                known = yield from prepare(text, vectors)
                self._keep(known)
            found.append(known)
        return found

    def _keep(self, text: Text) -> None:
        with self._lock:
            if text.text not in self._texts:
                self._texts[text.text] = text
                self._used += len(text.text)
            while self._used > self._room and self._texts:
                oldest, _ = self._texts.popitem(last=False)
                self._used -= len(oldest)
