"""Lists: the amount or the place of another item."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.turns._amounts import sort
from steelyard.judge.local.verifying.turns._turn import Turn, is_place, telling
from steelyard.judge.local.words import Word

_NUMBERED = re.compile(r"\(?(\d{1,3})[.)]\s")


def other_item(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """The claim's number stands with another item of a list, or the item stands at another place."""
    items = [line for line in lines if line.item]
    if len(items) < 2:
        return None
    wanted = telling(claim.words)
    named = [line for line in items if telling(line.words) & wanted]
    for at, word in enumerate(claim.words):
        if not word.stem.isdigit() and word.kind != "number":
            continue
        if is_place(claim.words, at):
            turn = _other_place(word, wanted, items)
        else:
            turn = _other_amount(word, named, items)
        if turn is not None:
            return turn
    return None


def _other_place(number: Word, wanted: set[str], items: Sequence[Line]) -> Turn | None:
    """Another item than the one at the place that is named has more of the claim."""
    there = {line: match[1] for line in items if (match := _NUMBERED.match(line.text))}
    shares = {line: len(wanted & telling(line.words)) for line in there}
    best = max(shares.values(), default=0)
    meant = [line for line, place in there.items() if place == number.stem]
    if not best or not meant or any(shares[line] == best for line in meant):
        return None
    return Turn(f"{number.surface!r} is the place of another item", opposite=True)


def _other_amount(number: Word, named: Sequence[Line], items: Sequence[Line]) -> Turn | None:
    """The items that the claim names have other numbers, and one that it does not name has this one."""
    if not named or not any(_has(line, number) for line in items):
        return None
    counted = all(any(sort(word) == sort(number) for word in line.words) for line in named)
    if not counted or any(_has(line, number) for line in named):
        return None
    return Turn(f"{number.surface!r} stands with another item", opposite=True)


def _has(line: Line, number: Word) -> bool:
    return number.stem in line.stems
