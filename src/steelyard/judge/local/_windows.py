"""Where most of a claim stands: a few neighbouring sentences of one text."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence

from steelyard.judge.local._finding import Window
from steelyard.judge.local._material import Line, ReadText

_SPAN = 3
"""Sentences in a window."""
_STRETCH = 50
"""Windows that are counted in one slice, and with equally many words that are compared more closely."""
_ROUNDING = 1e-6
_ROWS = 30
"""Rows of a table that are looked at on either side."""
_NONE: frozenset[str] = frozenset()


def find(
    claim: Line, weights: Mapping[str, float], texts: Sequence[ReadText]
) -> Generator[None, None, Window | None]:
    """The window with most of the claim's words; among equals the one that reads most like the claim."""
    best, equals = 0.0, list[Window]()
    for number, text in enumerate(texts):
        hits = _hits(claim, text.lines)
        gains = [math.fsum([weights[stem] for stem in hit]) for hit in hits]
        for first in range(max(1, len(hits) - _SPAN + 1) if any(hits) else 0):
            if first % _STRETCH == 0:
                yield
            last = min(first + _SPAN, len(hits))
            # Together they have at most what each has by itself.
            if math.fsum(gains[first:last]) < best - _ROUNDING:
                continue
            # Exact, for a set has its words in another order in each process.
            score = math.fsum([weights[stem] for stem in _NONE.union(*hits[first:last])])
            if score > best:
                best, equals = score, []
            if score == best > 0:
                equals.append(Window(number, first, last))
        yield
    return (yield from _likest(claim, equals, texts))


def _hits(claim: Line, lines: Sequence[Line]) -> list[frozenset[str]]:
    """What each sentence has of the claim; where it names rows of a table, the other rows have nothing."""
    named = any(line.names(claim) for line in lines)
    return [
        _NONE if named and line.row is not None and not line.names(claim) else claim.stems & line.stems
        for line in lines
    ]


def _likest(
    claim: Line, equals: Sequence[Window], texts: Sequence[ReadText]
) -> Generator[None, None, Window | None]:
    if len(equals) < 2:
        return equals[0] if equals else None
    likeness: list[float] = []
    for window in equals[:_STRETCH]:
        lines = texts[window.text].lines[window.first : window.last]
        likeness.append(max([float(line.mean @ claim.mean) for line in lines]))
        yield
    return equals[likeness.index(max(likeness))]


def lines_of(window: Window, texts: Sequence[ReadText]) -> list[Line]:
    """The sentences of a window; of a table all rows, with what introduces them."""
    text = texts[window.text].lines
    first, last = window.first, window.last
    if any(line.row is not None for line in text[first:last]):
        while first > max(0, window.first - _ROWS) and text[first].row is not None:
            first -= 1
        while last < min(len(text), window.last + _ROWS) and text[last].row is not None:
            last += 1
    return list(text[first:last])


def trim(window: Window, claim: Line, texts: Sequence[ReadText]) -> Window:
    """The window without the sentences at its ends that have nothing of the claim the others lack."""
    hits = [claim.stems & line.stems for line in texts[window.text].lines[window.first : window.last]]
    first, last = 0, len(hits)
    while last - first > 1:
        if hits[last - 1] <= _NONE.union(*hits[first : last - 1]):
            last -= 1
        elif hits[first] <= _NONE.union(*hits[first + 1 : last]):
            first += 1
        else:
            break
    return Window(window.text, window.first + first, window.first + last)
