"""A bar out of a team's own earlier scores, for metrics whose values mean nothing by themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from steelyard.scores import Score

WEEK: Final = 7 * 86_400.0
WEEKS: Final = 8
"""Weeks that are looked back."""
_SHARE: Final = 0.05
_LEAST: Final = 200
"""Scores below which a bar would be an anecdote."""
_LEAST_A_WEEK: Final = 50
EARLIER: Final = """SELECT happened_at, value, inclusion_probability FROM scores
    WHERE metric = :metric AND status = 'scored' AND value IS NOT NULL AND happened_at >= :since
    AND judge = :judge AND coalesce(prompt_version, '') = :prompt
    AND coalesce(metric_version, '') = :version AND options = :options
    ORDER BY happened_at DESC LIMIT 50000"""
"""The scores of one metric that were made as a given one was."""


@runtime_checkable
class KnowsEarlierScores(Protocol):
    """A sink that can say what is usual, by what it has stored."""

    def baseline(self, like: Score, *, now: float) -> float | None:
        """The bar for scores made as this one was; None while too few are stored. May block."""


def values_of(like: Score, *, now: float) -> dict[str, Any]:
    """What `EARLIER` names."""
    made = like.provenance
    return {
        "metric": like.metric,
        "since": now - WEEKS * WEEK,
        "judge": made.judge if made else "",
        "prompt": made.prompt_version if made else "",
        "version": made.metric_version if made else "",
        "options": like.options,
    }


def bar_of(rows: Iterable[tuple[float, float, float]], *, lower_is_better: bool) -> float | None:
    """The value that 95 % of turns reach in the median week; a bad week or two do not move it.

    Args:
        rows: Time, value and inclusion probability of earlier scores.
        lower_is_better: Whether to reach it means to be below it.

    Returns:
        None if there are fewer than 200 scores, or they span less than a week.
    """
    found = sorted(rows)
    if len(found) < _LEAST or found[-1][0] - found[0][0] < WEEK:
        return None
    weeks: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for at, value, inclusion in found:
        weeks[int((found[-1][0] - at) // WEEK)].append((value, 1 / inclusion))
    ends = [_end(week, lower_is_better) for week in weeks.values() if len(week) >= _LEAST_A_WEEK]
    return median(ends) if ends else None


def _end(week: list[tuple[float, float]], lower_is_better: bool) -> float:
    """The weighted quantile beyond which the worst 5 % of turns lie."""
    values, weights = np.array(sorted(week, reverse=lower_is_better)).T
    return float(values[np.searchsorted(np.cumsum(weights), _SHARE * weights.sum())])
