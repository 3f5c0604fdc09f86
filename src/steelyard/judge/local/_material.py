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
from steelyard.judge._static import Vectors, mean
from steelyard.judge._word import Word
from steelyard.judge._words import located
from steelyard.text import Sentence, iter_sentences

if TYPE_CHECKING:
    from steelyard.judge._static import Matrix


class Line:
    """One sentence, read. Its vectors are looked up when they are first asked for: most never are.

    Its `row` has the stems of the first cell, if it is a row of a table.
    """

    __slots__ = (
        *("_clause_stems", "_clauses", "_mean", "_places", "_source", "_vectors", "end", "row", "start"),
        *("stems", "text", "words"),
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
        self._clause_stems: tuple[frozenset[str], ...] | None = None
        self._source = vectors
        self._vectors: Matrix | None = None
        self._mean: Matrix | None = None

    def look_up(self) -> None:
        """Look the vectors up now, as a slice of work of its own."""
        assert self.mean is not None

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

    @property
    def clause_stems(self) -> tuple[frozenset[str], ...]:
        if self._clause_stems is None:
            self._clause_stems = tuple(frozenset([word.stem for word in part]) for part in self.clauses)
        return self._clause_stems

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
class ReadText:
    """A text, read."""

    text: str
    lines: tuple[Line, ...]
    stems: frozenset[str]
    raw: Set[str]
    """Digits of its quantities, whatever their units."""


class Known:
    """The stems of several texts; looked up in each, since to put them together would take long each time."""

    def __init__(self, texts: Sequence[ReadText]) -> None:
        self._stems = [text.stems for text in texts]

    def __contains__(self, stem: object) -> bool:
        return any(stem in stems for stems in self._stems)


CLAUSES = re.compile(
    r"[,;:()–—|]\s|[，；：、（）،؛]|\s(?=except\b|not (?:by|in|on|at|to|for|from|with)\b)"
    r"|\b(?:and|but|because|which|who|whose|while|with|although|though|und|aber|weil|et|mais|y|pero)\b"
)
"""What clauses are cut at; a conjunction belongs to neither side."""

_LONGEST = 800
"""Characters of a sentence that are read at once."""
_MOST_WORDS = 100
"""Words of a sentence that are read at once: they are compared with each other."""
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_MOST_LINES = 2_000
"""Sentences of a text that are read one by one; of a text with more, what follows is read in stretches."""

Steps = Generator[None, None, ReadText]
"""Work in slices of well under a millisecond: whoever drives it may do something else at every `yield`."""


def prepare(text: str, vectors: Vectors) -> Steps:
    """Read a text, sentence by sentence."""
    lines: list[Line] = []
    cells = 0
    for piece in pieces(text):
        before, cells = cells, piece.text.count("|")
        # The header of a table introduces its rows, and is not one.
        line = Line(piece, vectors, is_row=cells > 0 and cells == before)
        if line.words:
            lines.append(line)
        yield
    raw = {word.raw for line in lines for word in line.words if word.raw}
    return ReadText(text, tuple(lines), frozenset().union(*(line.stems for line in lines)), raw)


def pieces(text: str) -> Iterator[Sentence]:
    """The sentences of a text; one that goes on and on, a table or a log, is cut at white space."""
    # A log or a table without full stops would be one sentence whose window is everything.
    for sentence in _first(_rows(iter_sentences(text)), text):
        start = sentence.start
        while length := _too_long(text[start : min(sentence.end, start + _LONGEST + 1)]):
            kept = text[start : start + length].rstrip()
            yield Sentence(kept, start, start + len(kept))
            start += length
        yield Sentence(sentence.text[start - sentence.start :], start, sentence.end)


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
        text = _COMMAS.sub(lambda row: row[0].replace(",", "|"), sentence.text)
        text = _TAG.sub(lambda tag: _ENDS.get(tag[0].casefold(), "").ljust(len(tag[0])), text)
        rows = [*_ROW.finditer(text)]
        if sum("|" in row[0] for row in rows) < 2:
            yield sentence
            continue
        for row in rows:
            bare, begin = row[0].rstrip(), sentence.start + row.start()
            if any(map(str.isalnum, bare)):
                yield Sentence(bare, begin, begin + len(bare))


_ROW = re.compile(r"\S[^\n]*")
_COMMAS = re.compile(r"^[^,|\n]*(?:(?:(?<!\d),|,(?!\d{3}(?!\d)))[^,|\s][^,|\n]*){2,}$", re.MULTILINE)
_TAG = re.compile(r"</?(?:t[rdh]|table|t?head|tbody|br|p|li)\b[^<>\n]{0,200}>", re.IGNORECASE)
_ENDS = {"</td>": "|", "</th>": "|", "</tr>": "\n"}
"""What parts the cells and rows of a table beside bars, and what it is read as; other tags are as blanks."""


class Memory:
    """The texts read last. The questions about a record, and often the next record, share them.

    A text that was read is some hundred objects, all of which Python's garbage collector visits, while it
    stops the whole process: 100 us for a thousand characters. So as many as a large record has stay only as
    long as its questions come, and few for longer.
    """

    def __init__(self) -> None:
        self._used = 0
        self._texts: OrderedDict[str, tuple[ReadText, float]] = OrderedDict()
        # Answers of several requests may be worked on in different threads.
        self._lock = ForkLock()

    def read(self, texts: Sequence[str], vectors: Vectors) -> Generator[None, None, list[ReadText]]:
        """Read some texts, or remember them."""
        found: list[ReadText] = []
        for text in texts:
            with self._lock:
                known, _ = self._texts.get(text, (None, 0.0))
            read = known or (yield from prepare(text, vectors))
            self._keep(read)
            found.append(read)
        return found

    def _keep(self, text: ReadText) -> None:
        now = time.monotonic()
        with self._lock:
            if self._texts.pop(text.text, None) is None:
                self._used += len(text.text)
            self._texts[text.text] = text, now
            # Counted in characters, since a thousand short texts take less room than one long one.
            while self._texts:
                oldest, (_, asked) = next(iter(self._texts.items()))
                if self._used <= (_MOST_HELD if now - asked < _LATELY else _MOST_RESTING):
                    break
                del self._texts[oldest]
                self._used -= len(oldest)


_MOST_HELD, _MOST_RESTING = 400_000, 40_000
"""Characters of all texts that are remembered, and of those that nobody asked for lately."""
_LATELY = 1.0
"""Seconds."""
