"""Texts made ready for the verifier: sentences, words and vectors; kept, so that nothing is read twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.judge.local._text import Word, words
from steelyard.judge.local._vectors import Vectors
from steelyard.text import Sentence, iter_sentences

if TYPE_CHECKING:
    from steelyard.judge.local._vectors import Matrix


class Line:
    """One sentence, read. Its vectors are looked up when they are first asked for: most never are.

    Attributes:
        start: First character in its text.
        end: One past its last character.
        words: Its words, at least one.
        stems: Their stems.
    """

    __slots__ = ("_mean", "_source", "_vectors", "end", "start", "stems", "words")

    def __init__(self, start: int, end: int, words: list[Word], vectors: Vectors) -> None:
        self.start = start
        self.end = end
        self.words = words
        self.stems = frozenset([word.stem for word in words])
        self._source = vectors
        self._vectors: Matrix | None = None
        self._mean: Matrix | None = None

    def look_up(self) -> None:
        """Look the vectors up now, as a slice of work of its own."""
        assert self.mean is not None

    @property
    def vectors(self) -> Matrix:
        """Unit vector of each word."""
        if self._vectors is None:
            self._vectors = self._source.words([word.surface for word in self.words])
        return self._vectors

    @property
    def mean(self) -> Matrix:
        """The sentence's unit vector: the mean of its words', weighted by what they tell."""
        import numpy as np

        if self._mean is None:
            mean = np.array([word.weight for word in self.words], np.float32) @ self.vectors
            length = float(np.linalg.norm(mean))
            self._mean = mean / length if length else mean
        return self._mean


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A text, read."""

    text: str
    lines: tuple[Line, ...]
    stems: frozenset[str]


_LONGEST = 800
"""Characters of a sentence that are read at once."""

Steps = Generator[None, None, Text]
"""Work in slices of well under a millisecond: whoever drives it may do something else at every `yield`."""


def prepare(text: str, vectors: Vectors) -> Steps:
    """Read a text, sentence by sentence."""
    lines: list[Line] = []
    for piece in pieces(text):
        found = words(piece.text, proper=vectors.proper)
        if found:
            lines.append(Line(piece.start, piece.end, found, vectors))
        yield
    return Text(text, tuple(lines), frozenset().union(*(line.stems for line in lines)))


def pieces(text: str) -> Iterator[Sentence]:
    """The sentences of a text; one that goes on and on, a table or a log, is cut at white space."""
    for sentence in iter_sentences(text):
        start = sentence.start
        while sentence.end - start > _LONGEST:
            piece = text[start : start + _LONGEST]
            cut = max(piece.rfind(space) for space in " \n\t")
            length = cut + 1 if cut > 0 else _LONGEST
            kept = piece[:length].rstrip()
            yield Sentence(kept, start, start + len(kept))
            start += length
        yield Sentence(text[start : sentence.end], start, sentence.end)


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
