"""Tables: which row has the most or the least of a column, which of two has more, and whether a row rises."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.turns._turn import Turn, named

_SIDES = """
most highest largest biggest longest latest tallest heaviest dearest fastest priciest
least fewest lowest smallest shortest earliest lightest cheapest slowest
more higher larger bigger longer later taller heavier dearer faster
less fewer lower smaller shorter earlier lighter cheaper slower
rose rises risen grew grows grown increased increases climbed
fell falls fallen decreased decreases dropped drops declined declines shrank sank
"""
_MOST, _LEAST, _MORE, _LESS, _RISES, _FALLS = (
    frozenset(line.split()) for line in _SIDES.strip().splitlines()
)
_PRICED = frozenset({"expensive", "cheapest", "cheaper", "dearest", "dearer", "priciest"})
_PRICES = frozenset({"pric", "cost", "fe", "fare", "rat"})
"""Stems of what a column of prices is called."""
_AMOUNT = re.compile(r"(-?\d+(?:\.\d+)?)(?: \S+)?|(\d{1,2}):(\d{2})")


def agrees(claim: Line, rows: Sequence[Line]) -> bool | None:
    """Whether the table has the order a claim speaks of; None where it speaks of none, or of no column."""
    said = {word.surface.casefold() for word in claim.words}
    meant = named(claim, rows)
    if len(meant) == 1 and (rises := _side(said, _RISES, _FALLS)) is not None:
        return _trend(claim, meant[0], rises)
    column = _column(claim, said, rows)
    amounts = {} if column is None else _amounts(rows, column)
    if not amounts:
        return None
    if len(meant) == 1 and (most := _side(said, _MOST, _LEAST)) is not None:
        return amounts[meant[0]] == (max if most else min)(amounts.values())
    if len(meant) == 2 and "than" in said:
        first, second = sorted(meant, key=lambda line: _named_at(claim, line))
        return _risen(amounts[second], amounts[first], _side(said, _MORE, _LESS))
    return None


def other_rank(agreed: bool | None) -> Turn | None:
    """The table has another order."""
    return Turn("the table has it the other way round", opposite=True) if agreed is False else None


def _side(said: set[str], up: frozenset[str], down: frozenset[str]) -> bool | None:
    """Which of two sets of words a claim has; None where it has both or neither."""
    rises, falls = not said.isdisjoint(up), not said.isdisjoint(down)
    return rises if rises != falls else None


def _column(claim: Line, said: set[str], rows: Sequence[Line]) -> int | None:
    """The one column that a claim names by most of its header, or of prices by a word for them."""
    if not rows:
        return None
    headers = [above for above, _ in rows[0].cells]
    wanted = claim.stems if said.isdisjoint(_PRICED) else claim.stems | _PRICES
    shares = [len(above & wanted) / len(above) if above else 0.0 for above in headers]
    best = max(shares[1:], default=0.0)
    found = [at for at, share in enumerate(shares) if at and share == best]
    return found[0] if best and len(found) == 1 else None


def _amounts(rows: Sequence[Line], column: int) -> dict[Line, Decimal]:
    """What each row has in a column; nothing where one has no amount there, for it might be the most."""
    values = [(line, _value(line, column)) for line in rows]
    amounts = {line: value for line, value in values if value is not None}
    return amounts if len(amounts) == len(rows) else {}


def _trend(claim: Line, line: Line, rises: bool) -> bool | None:
    """Whether a row has more in the second of two columns that a claim names than in the first."""
    headers = [(_first(claim, above), at) for at, (above, _) in enumerate(line.cells) if at and above]
    columns = sorted((place, at) for place, at in headers if place is not None)
    if len(columns) != 2:
        return None
    one, other = (_value(line, at) for _, at in columns)
    return None if one is None or other is None else _risen(one, other, rises)


def _risen(one: Decimal, other: Decimal, said: bool | None) -> bool | None:
    """Whether an amount is above another, or below it, as is said; None where neither is."""
    if said is None:
        return None
    return other > one if said else other < one


def _first(claim: Line, stems: frozenset[str]) -> int | None:
    """Where all of some stems have been named in a claim."""
    places = [next((at for at, word in enumerate(claim.words) if word.stem == stem), None) for stem in stems]
    found = [place for place in places if place is not None]
    return max(found) if found and len(found) == len(places) else None


def _named_at(claim: Line, line: Line) -> int:
    return _first(claim, line.row or frozenset()) or 0


def _value(line: Line, column: int) -> Decimal | None:
    """The amount in a cell, in base units; a time in minutes."""
    if column >= len(line.cells):
        return None
    found = [match for stem in line.cells[column][1] if (match := _AMOUNT.fullmatch(stem))]
    if not found:
        return None
    match = max(found, key=lambda match: len(match[0].split()))  # with its unit rather than without
    return Decimal(match[1]) if match[1] else Decimal(60 * int(match[2]) + int(match[3]))
