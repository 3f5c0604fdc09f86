"""What rows of a results store become, whichever database they are from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.report.queries import Totals


def totals_of(row: Sequence[Any], durations: Sequence[float]) -> Totals:
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
