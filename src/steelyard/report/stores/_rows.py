"""What rows of a results store become, whichever database they are from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from steelyard.report.queries import Totals
from steelyard.report.turns import TurnRow

Place = tuple[float, str] | None
"""The time and the record id of the turn that a page ends or begins at."""
Row = Sequence[Any]


def order_of(before: Place, after: Place) -> Literal["ASC", "DESC"]:
    """A page that ends at a place is read backwards from it, for where it begins is not known."""
    return "ASC" if after and not before else "DESC"


def turn_rows(found: Sequence[Row], scored: Iterable[Row], order: Literal["ASC", "DESC"]) -> list[TurnRow]:
    """Turns, newest first, out of (id, time, question) and the rows of their scores."""
    scores: defaultdict[str, list[tuple[str, float | None, bool | None, str]]] = defaultdict(list)
    for record_id, metric, value, passed, status in scored:
        scores[record_id].append((metric, value, None if passed is None else bool(passed), status))
    rows = [
        TurnRow(record_id=row[0], evaluated_at=row[1], question=row[2] or "", scores=tuple(scores[row[0]]))
        for row in found
    ]
    return rows[::-1] if order == "ASC" else rows


def totals_of(row: Row, durations: Sequence[float]) -> Totals:
    """What turns come to: the counts in the order of the fields, then the median and the high duration."""
    return Totals(
        turns=row[0],
        with_content=row[1],
        first=row[2],
        last=row[3],
        requests=int(row[4]),
        prompt_tokens=int(row[5]),
        completion_tokens=int(row[6]),
        cost=row[7],
        priced=row[8],
        seconds=row[9],
        median_duration=durations[0] if durations else None,
        high_duration=durations[1] if durations else None,
    )
