"""Tables: the cell of another row or another column."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.turns._turn import TELLING, Turn


def other_row(claim: Line, rows: Sequence[Line]) -> Turn | None:
    """The rows of a table that the claim names lack what other rows have."""
    named = [line for line in rows if line.row and line.row <= claim.stems]
    if not named or len(named) == len(rows):
        return None
    here = frozenset[str]().union(*(_all(line) for line in named))
    elsewhere = frozenset[str]().union(*(_all(line) for line in rows if line not in named)) - here
    labels = frozenset[str]().union(*(line.row for line in rows if line.row))
    wrong = [
        w
        for w in claim.words
        if (w.stem in elsewhere - labels or w.raw in elsewhere) and (w.kind != "word" or w.weight > TELLING)
    ]
    return Turn(f"{wrong[0].surface!r} stands in another row", opposite=True) if wrong else None


def _all(line: Line) -> frozenset[str]:
    return line.stems.union(*(stems for _, stems in line.cells))


def other_column(claim: Line, rows: Sequence[Line]) -> Turn | None:
    """The one row and the one column that the claim names meet in a cell without the claim's number."""
    named = [line for line in rows if line.row and line.row <= claim.stems]
    if len(named) != 1:
        return None
    columns = named[0].cells[1:]
    meant = [stems for above, stems in columns if above and above <= claim.stems]
    headers = frozenset[str]().union(*(above for above, _ in columns))
    numbers = [w for w in claim.words if w.kind == "number" and w.stem not in headers]
    if len(meant) != 1 or not numbers:
        return None
    for number in numbers:
        forms = {number.stem, number.raw} - {""}
        if not forms & meant[0] and any(forms & stems for _, stems in columns):
            return Turn(f"{number.surface!r} stands in another column", opposite=True)
    return None
