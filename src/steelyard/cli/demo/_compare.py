"""Telling two variants apart: paired differences of their scores, with an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.scores import Direction, Evaluation

_RESAMPLES = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """How one metric differs between two variants, over the questions that both have a value for."""

    metric: str
    """The metric's name."""
    direction: Direction
    """Which way is better."""
    pairs: int
    """How many questions."""
    first: float
    """Mean of the first variant."""
    second: float
    """Mean of the second."""
    low: float
    """Lower end of the 95 % interval of second - first."""
    high: float
    """Upper end."""

    @property
    def value(self) -> float:
        """Second - first."""
        return self.second - self.first

    @property
    def second_is_worse(self) -> bool:
        """Whether the second variant is the worse one."""
        return (self.value < 0) == (self.direction == "higher")

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def compare(
    first: Mapping[str, Evaluation], second: Mapping[str, Evaluation]
) -> tuple[list[Difference], list[str]]:
    """Compare metric by metric.

    Args:
        first: Evaluations by question.
        second: Those of the other variant.

    Returns:
        The differences, and the names of metrics without two pairs of values to compare.
    """
    pairs: dict[str, list[tuple[float, float]]] = {}
    directions: dict[str, Direction] = {}
    for question in first.keys() & second.keys():
        other = {score.metric: score.value for score in second[question].scores}
        for score in first[question].scores:
            found = pairs.setdefault(score.metric, [])
            directions[score.metric] = score.direction
            value = other.get(score.metric)
            if score.value is not None and value is not None:
                found.append((score.value, value))
    enough = {metric: values for metric, values in pairs.items() if len(values) > 1}
    differences = [_difference(metric, directions[metric], values) for metric, values in enough.items()]
    return differences, [metric for metric in pairs if metric not in enough]


def _difference(metric: str, direction: Direction, pairs: Sequence[tuple[float, float]]) -> Difference:
    """The paired difference, with a percentile bootstrap interval (Efron & Tibshirani 1993, section 13.3)."""
    one, other = np.array(sorted(pairs)).T
    draw = np.random.default_rng(0)
    picks = draw.integers(0, len(one), size=(_RESAMPLES, len(one)))
    low, high = np.quantile((other - one)[picks].mean(axis=1), [0.025, 0.975])
    return Difference(
        metric=metric,
        direction=direction,
        pairs=len(one),
        first=float(one.mean()),
        second=float(other.mean()),
        low=float(low),
        high=float(high),
    )
