"""Sides: the same words on the other side of what stands between them: before, then, than."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.checks._mismatch import TELLING, Mismatch, is_year
from steelyard.judge.local.words import Word, rule

_NEAR = 5
"""Words before "than" among which the comparative stands, or behind "then" that say what came second."""
_BEHIND = 9
"""Words behind "before" that say what came second."""


_TIME = "time"


class _Sides(NamedTuple):
    """What stands on the two sides of a word; the same `pivot` has them in the same order."""

    pivot: str
    left: set[str]
    right: set[str]


def other_side(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """What came first comes second, or what is more is less."""
    for said in _sides(claim):
        for told in (one for line in lines for one in _sides(line) if one.pivot == said.pivot):
            same = _shared(said.left, told.left) + _shared(said.right, told.right)
            swapped = _shared(said.left, told.right) + _shared(said.right, told.left)
            if max(same, swapped) >= 1 and same != swapped:
                if swapped > same:
                    return Mismatch("what is said of one side is said of the other", opposite=True)
                break
        else:
            if said.pivot == _TIME and (found := _by_place(said, lines)) is not None:
                return found
    return None


def _by_place(said: _Sides, lines: Sequence[Line]) -> Mismatch | None:
    """By the years beside the two, or by where they stand in a text that counts its steps."""
    one, other = _place(said.left, lines), _place(said.right, lines)
    if one is None or other is None or one == other:
        return None
    years = (_year(one, lines), _year(other, lines))
    if years[0] and years[1] and years[0] != years[1]:
        return Mismatch("the years are in another order", opposite=True) if years[0] > years[1] else None
    steps = rule("steps")
    stepped = any(
        line.item or not steps.isdisjoint(word.surface.casefold() for word in line.words) for line in lines
    )
    return Mismatch("the steps are in another order", opposite=True) if stepped and one > other else None


def _place(wanted: set[str], lines: Sequence[Line]) -> tuple[int, int] | None:
    """The sentence and the clause with most of some words; the first of equals."""
    found = [
        (len({word.stem for word in part} & wanted), -row, -column)
        for row, line in enumerate(lines)
        for column, part in enumerate(line.clauses)
    ]
    most, row, column = max(found, default=(0, 0, 0))
    return (-row, -column) if most else None


def _year(place: tuple[int, int], lines: Sequence[Line]) -> str | None:
    """The one year of a clause, or else of its sentence."""
    line = lines[place[0]]
    for words in (line.clauses[place[1]], line.words):
        if years := {word.stem for word in words if is_year(word)}:
            return years.pop() if len(years) == 1 else None
    return None


def _shared(wanted: set[str], there: set[str]) -> float:
    return len(wanted & there) / len(wanted)


def _sides(line: Line) -> Iterator[_Sides]:
    """The sides of each word of a sentence that has some."""
    for pivot, words, others, turned in _cuts(line):
        left, right = _around(words), _around(others)
        if left - right and right - left:
            sides = (left - right, right - left)
            yield _Sides(pivot, *(reversed(sides) if turned else sides))


_Cut = tuple[str, Sequence[Word], Sequence[Word], bool]
"""What a sentence is cut at, the words on either side, and whether the right side comes first."""


def _cuts(line: Line) -> Iterator[_Cut]:
    words = line.words
    surfaces = [word.surface.casefold() for word in words]
    for at, surface in enumerate(surfaces):
        if surface in rule("before") or surface in rule("after"):
            yield _TIME, words[:at], words[at + 1 : at + _BEHIND], surface in rule("after")
        elif surface in rule("then") and at > 1:
            yield _at_then(words, surfaces, at)
        elif surface in rule("than"):
            compared = [word for word in words[max(0, at - _NEAR) : at] if _is_comparative(word)]
            for by in compared[-1:]:
                yield by.stem, [word for word in words[:at] if word is not by], words[at + 1 :], False


def _at_then(words: Sequence[Word], surfaces: Sequence[str], at: int) -> _Cut:
    """The sides of "A, then B", "first A and later B", and "A first and B afterwards"."""
    first = surfaces.index("first") if "first" in surfaces[:at] else -1
    if first > 0:
        return _TIME, words[:first], words[first + 1 : at + _NEAR], False
    return _TIME, words[first + 1 : at], words[at + 1 :], False


def _is_comparative(word: Word) -> bool:
    surface = word.surface.casefold()
    return surface in rule("comparing") or (len(surface) > 4 and surface.endswith("er"))


def _around(words: Sequence[Word]) -> set[str]:
    """The stems of the words that say what a part of a sentence is about, numbers with them."""
    return {word.stem for word in words if word.weight >= TELLING or word.kind == "number"}
