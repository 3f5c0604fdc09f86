"""Texts made ready for the verifier: sentences, words and vectors; kept, so that nothing is read twice."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from steelyard._internal.forks import ForkLock
from steelyard.judge.local._vectors import Vectors, mean
from steelyard.judge.local.words import Word, located
from steelyard.text import Sentence, iter_sentences

if TYPE_CHECKING:
    from steelyard.judge.local._vectors import Matrix


class Line:
    """One sentence, read. Its vectors are looked up when they are first asked for: most never are.

    Attributes:
        start: First character in its text.
        end: One past its last character.
        words: Its words, at least one.
        text: The sentence itself.
        row: The stems of the first cell, if it is a row of a table.
        stems: Their stems.
    """

    __slots__ = (
        *("_clauses", "_mean", "_places", "_source", "_vectors", "end", "row", "start", "stems"),
        *("text", "words"),
    )

    def __init__(self, piece: Sentence, vectors: Vectors, *, is_row: bool = False) -> None:
        self.text, self.start, self.end = piece.text, piece.start, piece.end
        found = located(piece.text, proper=vectors.proper)
        self.row: frozenset[str] | None = None
        if is_row:
            stop = piece.text.find("|", 1) % (len(piece.text) + 1)
            self.row = frozenset([word.stem for word, _, last in found if last <= stop])
        self.words: list[Word] = [word for word, _, _ in found]
        self.stems = frozenset([word.stem for word in self.words])
        self._places = [(first, last) for _, first, last in found]
        self._clauses: tuple[list[Word], ...] | None = None
        self._source = vectors
        self._vectors: Matrix | None = None
        self._mean: Matrix | None = None

    def look_up(self) -> None:
        """Look the vectors up now, as a slice of work of its own."""
        assert self.mean is not None

    @property
    def item(self) -> bool:
        """Whether it is an item of a list, with a bullet or a number, or a row of a table."""
        return self.row is not None or _ITEM.match(self.text) is not None

    def names(self, claim: Line) -> bool:
        """Whether this is a row of a table that a claim names: all words of its first cell are in it."""
        return self.row is not None and bool(self.row) and self.row <= claim.stems

    @property
    def clauses(self) -> tuple[list[Word], ...]:
        """Its words by clause, as commas and conjunctions cut it; a row of a table is one."""
        if self._clauses is None:
            cuts = [match.span() for match in CLAUSES.finditer(self.text)] if self.row is None else []
            self._clauses = tuple(part for part in self._cut(cuts) if part) if cuts else (self.words,)
            self._places = []  # not needed again, and as many objects as there are words
        return self._clauses

    def _cut(self, cuts: Sequence[tuple[int, int]]) -> list[list[Word]]:
        """The words between some cuts; a number that reaches over a cut is not parted."""
        parts: list[list[Word]] = [[]]
        at = 0
        for word, (first, last) in zip(self.words, self._places, strict=True):
            while at < len(cuts) and cuts[at][1] <= first:
                parts.append([])
                at += 1
            if at < len(cuts) and cuts[at][0] <= first and last <= cuts[at][1]:
                continue
            parts[-1].append(word)
        return parts

    @property
    def vectors(self) -> Matrix:
        """Unit vector of each word."""
        if self._vectors is None:
            self._vectors = self._source.words([word.surface for word in self.words])
        return self._vectors

    @property
    def mean(self) -> Matrix:
        """The sentence's unit vector: the mean of its words', weighted by what they tell."""
        if self._mean is None:
            self._mean = mean(self.vectors, [word.weight for word in self.words])
        return self._mean


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Text:
    """A text, read."""

    text: str
    lines: tuple[Line, ...]
    stems: frozenset[str]
    raw: Set[str]
    """Digits of its quantities, whatever their units, and the places of the items of its lists."""


CLAUSES = re.compile(
    r"[,;:()–—|]\s|[，；：、（）،؛]|\s(?=except\b|not (?:by|in|on|at|to|for|from|with)\b)"
    r"|\b(?:and|but|because|which|who|whose|while|with|although|though|und|aber|weil|et|mais|y|pero)\b"
)
"""What clauses are cut at; a conjunction belongs to neither side."""

_ITEM = re.compile(r"(?:[-*•–‣▪]|\(?\d{1,3}[.)])\s")
_LONGEST = 800
"""Characters of a sentence that are read at once."""
_MOST_WORDS = 100
"""Words of a sentence that are read at once: they are compared with each other."""
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_MOST_LINES = 2_000
"""Sentences of a text that are read one by one; of a text with more, what follows is read in stretches."""

Steps = Generator[None, None, Text]
"""Work in slices of well under a millisecond: whoever drives it may do something else at every `yield`."""


def prepare(text: str, vectors: Vectors) -> Steps:
    """Read a text, sentence by sentence."""
    lines: list[Line] = []
    in_table = False
    for piece in pieces(text):
        # The header of a table introduces its rows, and is not one.
        line = Line(piece, vectors, is_row=in_table and piece.text.startswith("|"))
        in_table = piece.text.startswith("|")
        if line.words:
            lines.append(line)
        yield
    raw = {word.raw for line in lines for word in line.words if word.raw}
    return Text(text, tuple(lines), frozenset().union(*(line.stems for line in lines)), raw | _counts(lines))


def _counts(lines: Sequence[Line]) -> frozenset[str]:
    """How many items each list has, and their places: "six steps" and "step four" stand nowhere in digits."""
    found: set[str] = set()
    run = 0
    for line in lines:
        run = run + 1 if line.item else 0
        if run:
            found.add(str(run))
    return frozenset(found)


def pieces(text: str) -> Iterator[Sentence]:
    """The sentences of a text; one that goes on and on, a table or a log, is cut at white space."""
    # A log or a table without full stops would be one sentence whose window is everything.
    for sentence in _first(_rows(iter_sentences(text)), text):
        start = sentence.start
        while length := _too_long(text[start : min(sentence.end, start + _LONGEST + 1)]):
            kept = text[start : start + length].rstrip()
            yield Sentence(kept, start, start + len(kept))
            start += length
        yield Sentence(text[start : sentence.end], start, sentence.end)


def _first(found: Iterator[Sentence], text: str) -> Iterator[Sentence]:
    """Sentences, and all of the text behind the last one that is read by itself as one more."""
    last = 0
    for sentence in islice(found, _MOST_LINES):
        yield sentence
        last = sentence.end
    if next(found, None) is not None:
        yield Sentence(text[last:], last, len(text))


def _too_long(piece: str) -> int:
    """Characters of a piece that are read at once; 0 if all of it is."""
    # No piece has more words than characters.
    words = islice(_WORD.finditer(piece), _MOST_WORDS, None) if len(piece) > _MOST_WORDS else iter(())
    if (more := next(words, None)) is not None:
        return more.start()
    if len(piece) <= _LONGEST:
        return 0
    cut = max(piece.rfind(space, 0, _LONGEST) for space in " \n\t")
    return cut + 1 if cut > 0 else _LONGEST


def _rows(found: Iterator[Sentence]) -> Iterator[Sentence]:
    """Sentences, and each row of a table by itself."""
    for sentence in found:
        # Rows of a table end with no full stop, so that sentences alone would run them together.
        if "\n|" not in f"\n{sentence.text}":
            yield sentence
            continue
        start = sentence.start
        for line in sentence.text.splitlines(keepends=True):
            bare = line.strip()
            if any(map(str.isalnum, bare)):
                begin = start + line.index(bare)
                yield Sentence(bare, begin, begin + len(bare))
            start += len(line)


class Memory:
    """The texts read last. The questions about a record, and often the next record, share them.

    A text that was read is some hundred objects, all of which Python's garbage collector visits, while it
    stops the whole process: 100 us for a thousand characters. So few texts stay for long; as many as a large
    record has stay only as long as its questions come.
    """

    def __init__(self, *, characters: int = 400_000, resting: int = 40_000, seconds: float = 1.0) -> None:
        """Begin with nothing.

        Args:
            characters: Of all texts.
            resting: Of those that nobody asked for lately.
            seconds: What lately is.
        """
        self._room = characters
        self._resting = resting
        self._seconds = seconds
        self._used = 0
        self._texts: OrderedDict[str, tuple[Text, float]] = OrderedDict()
        # Answers of several requests may be worked on in different threads.
        self._lock = ForkLock()

    @property
    def characters(self) -> int:
        """How many characters the texts have that it remembers."""
        return self._used

    def read(self, texts: Sequence[str], vectors: Vectors) -> Generator[None, None, list[Text]]:
        """Read some texts, or remember them."""
        found: list[Text] = []
        for text in texts:
            known = self._known(text)
            if known is None:
                known = yield from prepare(text, vectors)
                self._keep(known)
            found.append(known)
        return found

    def _known(self, text: str) -> Text | None:
        with self._lock:
            if text not in self._texts:
                return None
            known, _ = self._texts.pop(text)
            self._texts[text] = known, time.monotonic()
            return known

    def _keep(self, text: Text) -> None:
        now = time.monotonic()
        with self._lock:
            if text.text not in self._texts:
                self._used += len(text.text)
            self._texts[text.text] = text, now
            # Counted in characters, since a thousand short texts take less room than one long one.
            while self._texts:
                oldest, (_, asked) = next(iter(self._texts.items()))
                room = self._room if now - asked < self._seconds else self._resting
                if self._used <= room:
                    break
                del self._texts[oldest]
                self._used -= len(oldest)
