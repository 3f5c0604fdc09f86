"""What turns a claim round although its words are there: another owner, order, cause or amount.

Each check compares the claim with one place of the evidence that speaks of the same thing, and answers only
where both say something to the point. All of them are rules of language; none looks at how likely a claim is.
"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.turns._additions import added, inserted
from steelyard.judge.local.verifying.turns._amounts import other_amount
from steelyard.judge.local.verifying.turns._causes import other_cause
from steelyard.judge.local.verifying.turns._comparisons import other_comparison
from steelyard.judge.local.verifying.turns._items import other_item
from steelyard.judge.local.verifying.turns._order import other_order
from steelyard.judge.local.verifying.turns._quantifiers import other_quantity
from steelyard.judge.local.verifying.turns._ranks import agrees, other_rank
from steelyard.judge.local.verifying.turns._rows import other_column, other_row
from steelyard.judge.local.verifying.turns._swaps import crossed, other_side
from steelyard.judge.local.verifying.turns._turn import Turn, closest, telling
from steelyard.judge.local.words import Word


def turns(claim: Line, lines: Sequence[Line], rows: Sequence[Line], known: frozenset[str]) -> list[Turn]:
    """The differences between a claim and the sentences that say most of it, in a table with its `rows`."""
    found = [
        other_amount(claim, lines),
        _other_owner(claim, lines),
        other_row(claim, rows),
        other_column(claim, rows),
        other_item(claim, lines),
        other_rank(agrees(claim, rows)),
        other_order(claim, lines),
        other_cause(claim, lines),
        other_quantity(claim, lines),
        other_comparison(claim, lines),
        crossed(claim, lines),
        other_side(claim, lines),
        added(claim, known),
        inserted(claim, lines, known),
    ]
    return [turn for turn in found if turn]


def _other_owner(claim: Line, lines: Sequence[Line]) -> Turn | None:
    """A clause about the same thing has another name in it, and none has one of the claim's.

    A clause without a subject has that of its sentence: "and sold it to her son".
    """
    # What opens the claim may be known for a name by how the evidence writes it.
    evident = {word.stem for line in lines for word in line.words if word.kind == "name"}
    for clause in claim.clauses:
        names = {word.stem: word for word in clause if word.kind == "name" or word.stem in evident}
        if not names or len(telling(clause) - names.keys()) < _ABOUT:
            continue
        near = closest(clause, lines, "name")
        there = next((word for _, part in near for word in part if word.kind == "name"), None)
        if there and not names.keys() & _said(near):
            name = next(iter(names.values()))
            return Turn(f"{name.surface!r} where it has {there.surface!r}", opposite=False)
    return None


def _said(near: Sequence[tuple[Line, Sequence[Word]]]) -> set[str]:
    """The stems of some clauses, with what may be their subjects and stands in other clauses."""
    said = {word.stem for _, part in near for word in part}
    for line, part in near:
        said |= line.stems if not _has_subject(part) else _bare_names(line)
    return said


def _has_subject(clause: Sequence[Word]) -> bool:
    """Whether a clause begins with a name or an article."""
    return clause[0].kind == "name" or clause[0].surface.casefold() in _ARTICLES


def _bare_names(line: Line) -> set[str]:
    """The names of clauses of names alone: the further ones of "Ada Quist, Ben Ruiz and Carla Nyman"."""
    bare = [part for part in line.clauses if all(word.kind == "name" for word in part)]
    return {word.stem for part in bare for word in part}


_ARTICLES = frozenset({"the", "a", "an", "der", "die", "das", "le", "la", "el", "il", "o"})
_ABOUT = 2
"""Telling words beside its names from which a clause can be told from others."""
