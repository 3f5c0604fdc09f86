"""What has changed, in words: the first thing that a reader of scores wants to know."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from steelyard._internal.text import shorten
from steelyard.report.figures import ChangeFigure, MetricFigure

_NAMED = 4
_DAY = 86400.0
_QUIET = "no clear change"
_TOO_FEW = "too few turns to tell a change"


def change_words(metric: MetricFigure) -> str:
    """Whether a metric changed, and how much since when: `fell by 0.05 (0.03 to 0.07) since 2026-11-18`."""
    change = metric.change
    if change is None:
        return _TOO_FEW
    if not change.difference.clear:
        return _QUIET
    found = change.difference
    least, most = sorted((abs(found.low), abs(found.high)))
    verb = _verb(change)
    return f"{verb} by {abs(found.value):.2f} ({least:.2f} to {most:.2f}) since {_since(change)}"


def headline(metrics: Sequence[MetricFigure]) -> str:
    """What has changed among all metrics, in a sentence or two; empty of none."""
    if not metrics:
        return ""
    told = [metric.change for metric in metrics if metric.change is not None]
    if not told:
        return "There are too few turns to tell whether anything has changed."
    clear = [
        (metric, metric.change) for metric in metrics if metric.change and metric.change.difference.clear
    ]
    if not clear:
        return "No metric has clearly changed in this time."
    clear.sort(key=lambda pair: (not pair[1].worse, -abs(pair[1].difference.value)))
    sentences = [
        f"{shorten(metric.metric, 80)} {_verb(change)} from {change.difference.first:.2f} to "
        f"{change.difference.second:.2f}, since {_since(change)}."
        for metric, change in clear[:_NAMED]
    ]
    if len(clear) > _NAMED:
        sentences.append(f"{len(clear) - _NAMED} more have changed.")
    elif len(clear) < len(metrics):
        sentences.append("No other metric has clearly changed.")
    return " ".join(sentences)


def _verb(change: ChangeFigure) -> str:
    return "fell" if change.difference.value < 0 else "rose"


def _since(change: ChangeFigure) -> str:
    """The day, and the hour where the time does not begin with a day."""
    at = datetime.fromtimestamp(change.since, UTC)
    return f"{at:%Y-%m-%d}" if change.since % _DAY == 0 else f"{at:%Y-%m-%d %H:%M}"
