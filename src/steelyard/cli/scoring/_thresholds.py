"""`--fail-under`: bars that the means of a run must clear."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steelyard.errors import ConfigurationError
from steelyard.stats import MetricSummary


@dataclass(frozen=True, slots=True)
class Threshold:
    """A mean that a metric must reach."""

    metric: str
    """The instance name."""
    value: float
    """The least it may be, or the most where lower is better."""


def parse_thresholds(given: Iterable[str], *, known: Sequence[str]) -> list[Threshold]:
    """Read `metric=0.8`.

    Raises:
        ConfigurationError: If one cannot be read, or its metric is not being scored.
    """
    bars = []
    for text in given:
        name, _, number = text.partition("=")
        metric = name.strip().lower().replace("-", "_")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ConfigurationError(f"--fail-under {text!r} is not of the form metric=0.8")
        if metric not in known:
            raise ConfigurationError(f"--fail-under {text!r}: scored are {', '.join(known)}")
        bars.append(Threshold(metric, value))
    return bars


def missed(bars: Iterable[Threshold], summaries: Iterable[MetricSummary]) -> list[str]:
    """A sentence for each bar that was not cleared; a metric without any value misses its bar."""
    means = {summary.metric: summary for summary in summaries}
    found = []
    for bar in bars:
        summary = means.get(bar.metric)
        if summary is None or summary.mean is None:
            found.append(f"{bar.metric} has no value to hold against {bar.value:g}")
        elif summary.direction == "higher" and summary.mean < bar.value:
            found.append(f"{bar.metric} {summary.mean:.4g} is under {bar.value:g}")
        elif summary.direction == "lower" and summary.mean > bar.value:
            found.append(f"{bar.metric} {summary.mean:.4g} is over {bar.value:g} (lower is better)")
    return found
