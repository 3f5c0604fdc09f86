"""Telling two variants apart, metric by metric, over the questions that both have a value for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from steelyard.scores import Direction, Evaluation
from steelyard.stats import Difference, paired_difference


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricDifference:
    """How one metric differs between two variants."""

    metric: str
    """The metric's name."""
    direction: Direction
    """Which way is better."""
    difference: Difference
    """Second - first, over pairs of the same question."""

    @property
    def second_is_worse(self) -> bool:
        """Whether the second variant is the worse one."""
        return (self.difference.value < 0) == (self.direction == "higher")


def compare(
    first: Mapping[str, Evaluation], second: Mapping[str, Evaluation]
) -> tuple[list[MetricDifference], list[str]]:
    """Compare Evaluations by question; also names the metrics without two pairs of values."""
    directions: dict[str, Direction] = {}
    pairs: dict[str, list[tuple[float, float]]] = {}
    for question in sorted(first.keys() & second.keys()):
        other = {score.metric: score.value for score in second[question].scores}
        for score in first[question].scores:
            directions[score.metric] = score.direction
            value = other.get(score.metric)
            if score.value is not None and value is not None:
                pairs.setdefault(score.metric, []).append((score.value, value))
    # Of one pair nothing can be said.
    differences = {
        metric: paired_difference([one for one, _ in values], [two for _, two in values])
        for metric, values in pairs.items()
        if len(values) > 1
    }
    told = [
        MetricDifference(metric=metric, direction=directions[metric], difference=difference)
        for metric, difference in differences.items()
        if difference is not None
    ]
    return told, [metric for metric in directions if differences.get(metric) is None]
