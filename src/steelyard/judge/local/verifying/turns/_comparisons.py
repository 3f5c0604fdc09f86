"""Comparisons: which of two things is more of something."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying._opposites import opposites
from steelyard.judge.local.verifying.turns._turn import Turn
from steelyard.judge.local.words import Word

_THAN = frozenset({"than", "als"})
_NEAR = 5
"""Words before "than" among which the comparative stands."""
_TELLING = 3.5


def other_comparison(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The claim has the same comparative as the evidence with the two sides swapped, or its opposite."""
    said = _compared(claim.words)
    if said is None:
        return None
    for line in lines:
        told = _compared(line.words)
        if told is None:
            continue
        against = any(opposites(word) & told.by for word in said.by)
        if not against and not said.by & told.by:
            continue
        same = len(said.more & told.more) + len(said.less & told.less)
        swapped = len(said.more & told.less) + len(said.less & told.more)
        if same != swapped and (same > swapped) == against:
            return Turn("it is compared the other way round", opposite=True)
    return None


class _Compared:
    """A comparison: what is more, what is less, and by which word."""

    __slots__ = ("by", "less", "more")

    def __init__(self, more: set[str], less: set[str], by: set[str]) -> None:
        self.more, self.less, self.by = more - less, less - more, by


def _compared(words: Sequence[Word]) -> _Compared | None:
    place = next((at for at, word in enumerate(words) if word.surface.casefold() in _THAN), 0)
    comparing = [word for word in words[max(0, place - _NEAR) : place] if _is_comparative(word)]
    if not comparing:
        return None
    by = {comparing[-1].stem}
    more, less = (
        {w.stem for w in part if w.weight >= _TELLING} for part in (words[:place], words[place + 1 :])
    )
    return _Compared(more - by, less, by)


def _is_comparative(word: Word) -> bool:
    surface = word.surface.casefold()
    return surface in ("more", "less", "fewer", "worse", "mehr", "weniger") or (
        len(surface) > 4 and surface.endswith("er")
    )
