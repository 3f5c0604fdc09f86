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


def _likest(claim: Line, equals: Sequence[Window], texts: Sequence[Text]) -> Generator[None, None, Window]:
    best, most = equals[0], -1.0
    for window in equals[:_EQUALS]:
        lines = texts[window.text].lines[window.first : window.last]
        likeness = max([float(line.mean @ claim.mean) for line in lines])
        if likeness > most:
            best, most = window, likeness
        yield
    return best


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
