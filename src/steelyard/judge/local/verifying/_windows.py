"""Where most of a claim stands: a few neighbouring sentences of one text."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence

from steelyard.judge.local._material import Line, Text
from steelyard.judge.local.verifying._finding import Window

_SPAN = 3
"""Sentences in a window."""
_STRETCH = 50
"""Windows that are counted in one slice."""
_EQUALS = 50
"""Windows with equally many words that are compared more closely."""


def find(
    claim: Line, weights: Mapping[str, float], texts: Sequence[Text]
) -> Generator[None, None, Window | None]:
    """The window with most of the claim's words; among equals the one that reads most like the claim."""
    most = 0.0
    equals: list[Window] = []
    for number, text in enumerate(texts):
        hits = [claim.stems & line.stems for line in text.lines]
        if any(line.row and line.row <= claim.stems for line in text.lines):
            hits = [
                hit if line.row is None or line.row <= claim.stems else _NONE
                for hit, line in zip(hits, text.lines, strict=True)
            ]
        gains = [math.fsum([weights[stem] for stem in hit]) for hit in hits]
        for first in range(max(1, len(hits) - _SPAN + 1) if any(hits) else 0):
            if first % _STRETCH == 0:
                yield
            # Together they have at most what each has by itself.
            if math.fsum(gains[first : first + _SPAN]) < most - _ROUNDING:
                continue
            found = frozenset[str]().union(*hits[first : first + _SPAN])
            score = math.fsum([weights[stem] for stem in found])  # the same in whatever order a set has
            if score > most:
                most, equals = score, []
            if score == most > 0:
                equals.append(Window(number, first, min(first + _SPAN, len(hits))))
        yield
    if len(equals) < 2:
        return equals[0] if equals else None
    return (yield from _likest(claim, equals, texts))


_ROUNDING = 1e-6
_NONE: frozenset[str] = frozenset()


def _likest(claim: Line, equals: Sequence[Window], texts: Sequence[Text]) -> Generator[None, None, Window]:
    best, most = equals[0], -1.0
    for window in equals[:_EQUALS]:
        lines = texts[window.text].lines[window.first : window.last]
        likeness = max([float(line.mean @ claim.mean) for line in lines])
        if likeness > most:
            best, most = window, likeness
        yield
    return best


def lines_of(window: Window, claim: Line, texts: Sequence[Text]) -> list[Line]:
    """The sentences of a window: of a list all items with what introduces them, of a table the rows named."""
    text = texts[window.text].lines
    first, last = window.first, window.last
    if any(line.item for line in text[first:last]):
        while first > max(0, window.first - _ITEMS) and text[first - 1].item:
            first -= 1
        first = max(0, first - 1) if text[first].item else first
        while last < min(len(text), window.last + _ITEMS) and text[last].item:
            last += 1
    found = list(text[first:last])
    named = [line for line in found if line.row is None or line.row <= claim.stems]
    if not any(line.row for line in named):
        return found
    return [*_caption(text, first), *named]


def _caption(text: Sequence[Line], first: int) -> Sequence[Line]:
    """The sentence before the table that a window begins in, which says what its cells are."""
    while first and text[first].row is not None and text[first - 1].row is not None:
        first -= 1
    return text[first - 1 : first] if first and text[first].row is not None else ()


def rows_of(window: Window, texts: Sequence[Text]) -> list[Line]:
    """The rows of the table that a window touches, without its header."""
    text = texts[window.text].lines
    at = next((at for at in range(window.first, window.last) if text[at].row is not None), None)
    if at is None:
        return []
    first = last = at
    while first > max(0, at - _ITEMS) and text[first - 1].row is not None:
        first -= 1
    while last < min(len(text), at + _ITEMS) and text[last].row is not None:
        last += 1
    return [line for line in text[first:last] if any(above for above, _ in line.cells)]


_ITEMS = 30
"""Items of a list or rows of a table that are looked at on either side."""


def trim(window: Window, claim: Line, texts: Sequence[Text]) -> Window:
    """The window without the sentences at its ends that have nothing of the claim the others lack."""
    hits = [claim.stems & line.stems for line in texts[window.text].lines[window.first : window.last]]
    first, last = 0, len(hits)
    while last - first > 1:
        if hits[last - 1] <= frozenset[str]().union(*hits[first : last - 1]):
            last -= 1
        elif hits[first] <= frozenset[str]().union(*hits[first + 1 : last]):
            first += 1
        else:
            break
    return Window(window.text, window.first + first, window.first + last)
