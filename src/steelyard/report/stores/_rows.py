"""What rows of a results store become, whichever database they are from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from steelyard.report.queries import Totals
from steelyard.report.turns import EVIDENCE

COUNTED: Final = ", ".join(f"count(*) FILTER (WHERE e.evidence = '{kind}')" for kind in EVIDENCE[:-1])
"""Columns that count turns by how their passages are known."""
WITH_EVIDENCE: Final = "coalesce(e.evidence, 'unknown') = :evidence"
"""A condition on `evaluations e`: that their passages are known in one way."""


def evidence_of(turns: int, counts: Sequence[int]) -> dict[str, int]:
    """The counts of `COUNTED` by kind; of the rest of the turns nothing says it."""
    found = zip(EVIDENCE, (*counts, turns - sum(counts)), strict=True)
    return {kind: count for kind, count in found if count}


def totals_of(row: Sequence[Any], durations: Sequence[float]) -> Totals:
    """What turns come to: the counts in the order of the fields, `COUNTED` last; and durations."""
    return Totals(
        turns=row[0],
        with_content=row[1],
        evidence=evidence_of(row[0], row[-4:]),
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
