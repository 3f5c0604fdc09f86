"""`--fail-under`: bars that the means of a run must clear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from steelyard.cli._options import numbers_by_name
from steelyard.errors import ConfigurationError
from steelyard.stats import MetricSummary


def parse_thresholds(given: Iterable[str], *, known: Sequence[str]) -> dict[str, float]:
    """The mean that each metric must reach, or must not exceed where lower is better.

    Raises:
        ConfigurationError: If one cannot be read, or its metric is not being scored.
    """
    bars = numbers_by_name(given, option="--fail-under")
    for metric, bar in bars.items():
        if metric not in known:
            raise ConfigurationError(f"--fail-under {f'{metric}={bar:g}'!r}: scored are {', '.join(known)}")
    return bars


def missed(bars: Mapping[str, float], summaries: Iterable[MetricSummary]) -> list[str]:
    """A sentence for each bar that was not cleared; a metric without any value misses its bar."""
    means = {summary.metric: summary for summary in summaries}
    found = []
    for metric, bar in bars.items():
        summary = means.get(metric)
        if summary is None or summary.mean is None:
            found.append(f"{metric} has no value to hold against {bar:g}")
        elif summary.direction == "higher" and summary.mean < bar:
            found.append(f"{metric} {summary.mean:.4g} is under {bar:g}")
        elif summary.direction == "lower" and summary.mean > bar:
            found.append(f"{metric} {summary.mean:.4g} is over {bar:g} (lower is better)")
    return found
