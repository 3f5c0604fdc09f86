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
    best = _Best(weights)
    for number, text in enumerate(texts):
        hits = _hits(claim, text.lines)
        gains = [math.fsum([weights[stem] for stem in hit]) for hit in hits]
        for first in range(max(1, len(hits) - _SPAN + 1) if any(hits) else 0):
            if first % _STRETCH == 0:
                yield
            last = min(first + _SPAN, len(hits))
            # Together they have at most what each has by itself.
            if math.fsum(gains[first:last]) >= best.score - _ROUNDING:
                best.take(Window(number, first, last), hits[first:last])
        yield
    if len(best.windows) < 2:
        return best.windows[0] if best.windows else None
    return (yield from _likest(claim, best.windows, texts))


_ROUNDING = 1e-6
_NONE: frozenset[str] = frozenset()


def _hits(claim: Line, lines: Sequence[Line]) -> list[frozenset[str]]:
    """What each sentence has of the claim; where it names rows of a table, the other rows have nothing."""
    hits = [claim.stems & line.stems for line in lines]
    if not any(line.names(claim) for line in lines):
        return hits
    return [
        hit if line.row is None or line.names(claim) else _NONE for hit, line in zip(hits, lines, strict=True)
    ]


class _Best:
    """The windows with the most of a claim so far."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self.score = 0.0
        self.windows: list[Window] = []

    def take(self, window: Window, hits: Sequence[frozenset[str]]) -> None:
        """Keep a window if none before has more, and drop those that have less."""
        found = frozenset[str]().union(*hits)
        # Exact, for a set has its words in another order in each process.
        score = math.fsum([self._weights[stem] for stem in found])
        if score > self.score:
            self.score, self.windows = score, []
        if score == self.score > 0:
            self.windows.append(window)


def _likest(claim: Line, equals: Sequence[Window], texts: Sequence[Text]) -> Generator[None, None, Window]:
    best, most = equals[0], -1.0
    for window in equals[:_EQUALS]:
        lines = texts[window.text].lines[window.first : window.last]
        likeness = max([float(line.mean @ claim.mean) for line in lines])
        if likeness > most:
            best, most = window, likeness
        yield
    return best


def lines_of(window: Window, texts: Sequence[Text]) -> list[Line]:
    """The sentences of a window; of a list or a table all items or rows, with what introduces them."""
    text = texts[window.text].lines
    first, last = window.first, window.last
    if any(line.item for line in text[first:last]):
        while first > max(0, window.first - _ITEMS) and text[first - 1].item:
            first -= 1
        first = max(0, first - 1) if text[first].item else first
        while last < min(len(text), window.last + _ITEMS) and text[last].item:
            last += 1
    return list(text[first:last])


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
