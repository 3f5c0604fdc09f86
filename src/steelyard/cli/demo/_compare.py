"""Telling two variants apart, metric by metric, over the questions that both have a value for."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.golden.gates import MetricComparison, adjusted
from steelyard.scores import Direction, Evaluation
from steelyard.stats import paired_difference


def compare(
    first: Mapping[str, Evaluation], second: Mapping[str, Evaluation]
) -> tuple[list[MetricComparison], list[str]]:
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
        MetricComparison(
            metric=metric, slice="all cases", direction=directions[metric], difference=difference
        )
        for metric, difference in differences.items()
        if difference is not None
    ]
    return adjusted(told), [metric for metric in directions if differences.get(metric) is None]
