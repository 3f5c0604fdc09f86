"""Tables: the cell of another row or another column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.turns._turn import TELLING, Turn, named


def other_row(claim: Line, rows: Sequence[Line]) -> Turn | None:
    """The rows of a table that the claim names lack what other rows have."""
    meant = named(claim, rows)
    if not meant or len(meant) == len(rows):
        return None
    elsewhere = _all(line for line in rows if line not in meant) - _all(meant)
    labels = frozenset[str]().union(*(line.row for line in rows if line.row))
    wrong = [w for w in claim.words if w.stem in elsewhere - labels or w.raw in elsewhere]
    word = next((w for w in wrong if w.kind != "word" or w.weight > TELLING), None)
    return Turn(f"{word.surface!r} stands in another row", opposite=True) if word else None


def _all(lines: Iterable[Line]) -> frozenset[str]:
    """The stems of some rows and of their cells, which hold quantities otherwise than the sentence does."""
    return frozenset[str]().union(*(line.stems.union(*(cell for _, cell in line.cells)) for line in lines))


def other_column(claim: Line, rows: Sequence[Line]) -> Turn | None:
    """The one row and the one column that the claim names meet in a cell without the claim's number."""
    meant = named(claim, rows)
    if len(meant) != 1:
        return None
    columns = meant[0].cells[1:]
    cells = [stems for above, stems in columns if above and above <= claim.stems]
    if len(cells) != 1:
        return None
    headers = frozenset[str]().union(*(above for above, _ in columns))
    beside = frozenset[str]().union(*(stems for _, stems in columns)) - cells[0]
    for number in claim.words:
        forms = {number.stem, number.raw} - {""}
        if number.kind != "number" or number.stem in headers or forms & cells[0]:
            continue
        if forms & beside:
            return Turn(f"{number.surface!r} stands in another column", opposite=True)
    return None
