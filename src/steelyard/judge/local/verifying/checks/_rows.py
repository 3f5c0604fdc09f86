"""Tables: what stands in another row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steelyard.judge.local._material import Line
from steelyard.judge.local.verifying.checks._mismatch import TELLING, Mismatch


def other_row(claim: Line, lines: Sequence[Line]) -> Mismatch | None:
    """The rows of a table that the claim names lack what other rows have."""
    rows = [line for line in lines if line.row is not None]
    meant = [line for line in rows if line.names(claim)]
    if not meant or len(meant) == len(rows):
        return None
    elsewhere = _all(line for line in rows if line not in meant) - _all(meant)
    wrong = [w for w in claim.words if w.stem in elsewhere or (w.raw and w.raw in elsewhere)]
    word = next((w for w in wrong if w.kind != "word" or w.weight > TELLING), None)
    return Mismatch(f"{word.surface!r} stands in another row", opposite=True) if word else None


def _all(lines: Iterable[Line]) -> set[str]:
    """The stems of some rows, and the digits of their quantities."""
    return {form for line in lines for word in line.words for form in (word.stem, word.raw) if form}
