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
    """Compare metric by metric.

    Args:
        first: Evaluations by question.
        second: Those of the other variant.

    Returns:
        The differences, and the names of metrics without two pairs of values to compare.
    """
    pairs: dict[str, list[tuple[float, float]]] = {}
    directions: dict[str, Direction] = {}
    for question in sorted(first.keys() & second.keys()):
        other = {score.metric: score.value for score in second[question].scores}
        for score in first[question].scores:
            found = pairs.setdefault(score.metric, [])
            directions[score.metric] = score.direction
            value = other.get(score.metric)
            if score.value is not None and value is not None:
                found.append((score.value, value))
    differences = []
    for metric, values in pairs.items():
        one, two = [value for value, _ in values], [value for _, value in values]
        difference = paired_difference(one, two) if len(values) > 1 else None
        if difference is not None:
            differences.append(
                MetricDifference(metric=metric, direction=directions[metric], difference=difference)
            )
    compared = {one.metric for one in differences}
    return differences, [metric for metric in pairs if metric not in compared]
