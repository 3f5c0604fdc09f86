"""Order in time: what a claim says came first, and what the evidence says."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.turns._turn import Turn, around, is_year, shared
from steelyard.judge.local.words import Word

_EARLIER = {"before": True, "after": False, "avant": True, "après": False, "vor": True, "nach": False}
_EARLIER |= {"bevor": True, "nachdem": False, "antes": True, "después": False, "prima": True, "dopo": False}
_THEN = frozenset({"afterwards", "afterward", "then", "later", "next", "subsequently", "second"})
_AND_THEN = frozenset({"then", "afterwards", "subsequently", "danach", "puis", "ensuite"})
_MARKERS = _THEN | {"first", "last", "finally", "until", "since", "later"}


def other_order(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The claim says that one thing came before another, and the evidence the other way round."""
    said = _order(claim.words)
    if said is None:
        return None
    first, second = said
    for line in lines:
        told = _order(line.words)
        if told is None:
            continue
        same = shared(first, told[0]) + shared(second, told[1])
        swapped = shared(first, told[1]) + shared(second, told[0])
        if max(same, swapped) >= 1 and same != swapped:
            return Turn("the order in time is another", opposite=True) if swapped > same else None
    return _by_place(first, second, lines)


def _order(words: Sequence[Word]) -> tuple[set[str], set[str]] | None:
    """What a sentence says came first, and what came second."""
    surfaces = [word.surface.casefold() for word in words]
    for place, surface in enumerate(surfaces):
        if surface in _EARLIER and 0 < place < len(words) - 1:
            left, right = around(words[:place]), around(words[place + 1 : place + 9])
            if left - right and right - left:
                both = (left - right, right - left)
                return both if _EARLIER[surface] else (both[1], both[0])
    split = _at_then(words, surfaces)
    if split is None:
        return None
    left, right = around(split[0]), around(split[1])
    return (left - right, right - left) if left - right and right - left else None


def _at_then(words: Sequence[Word], surfaces: Sequence[str]) -> tuple[Sequence[Word], Sequence[Word]] | None:
    """The two sides of "A first and B afterwards", "first A and later B", and "A, then B"."""
    if "first" in surfaces:
        place = surfaces.index("first")
        then = next((at for at in range(place + 1, len(words)) if surfaces[at] in _THEN), None)
        if then is not None:
            return (
                (words[1:then], words[then + 1 :])
                if place == 0
                else (words[:place], words[place + 1 : then + 6])
            )
    then = next((at for at in range(2, len(words) - 1) if surfaces[at] in _AND_THEN), None)
    return None if then is None else (words[:then], words[then + 1 :])


def _by_place(first: set[str], second: set[str], lines: Sequence[Line]) -> Turn | None:
    """By the years beside the two, or by where they stand in a text that counts its steps."""
    one, other = _place(first, lines), _place(second, lines)
    if one is None or other is None or one == other:
        return None
    years = (_year(one, lines), _year(other, lines))
    if years[0] and years[1] and years[0] != years[1]:
        return Turn("the years are in another order", opposite=True) if years[0] > years[1] else None
    stepped = any(
        line.item or not _MARKERS.isdisjoint(word.surface.casefold() for word in line.words) for line in lines
    )
    return Turn("the steps are in another order", opposite=True) if stepped and one > other else None


def _place(wanted: set[str], lines: Sequence[Line]) -> tuple[int, int] | None:
    """The sentence and the clause with most of some words; the first of equals."""
    found = [
        (len({word.stem for word in part} & wanted), -row, -column)
        for row, line in enumerate(lines)
        for column, part in enumerate(line.clauses)
    ]
    most, row, column = max(found, default=(0, 0, 0))
    return (-row, -column) if most else None


def _year(place: tuple[int, int], lines: Sequence[Line]) -> int | None:
    """The one year of a clause, or else of its sentence."""
    row, column = place
    for words in (lines[row].clauses[column], lines[row].words):
        years = {int(word.stem) for word in words if word.kind == "number" and is_year(word)}
        if years:
            return years.pop() if len(years) == 1 else None
    return None
