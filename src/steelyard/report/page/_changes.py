"""Whether metrics changed, in words."""

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
    if not metric.changes:
        return _TOO_FEW
    clear = [change for change in metric.changes if change.difference.clear]
    return "; ".join(map(_one_change, clear)) or _QUIET


def _one_change(change: ChangeFigure) -> str:
    found = change.difference
    least, most = sorted((abs(found.low), abs(found.high)))
    return f"{_verb(change)} by {abs(found.value):.2f} ({least:.2f} to {most:.2f}) {_since(change)}"


def headline(metrics: Sequence[MetricFigure]) -> str:
    """What has changed among all metrics, in a sentence or two; empty of none."""
    if not metrics:
        return ""
    if not any(metric.changes for metric in metrics):
        return "There are too few turns to tell whether anything has changed."
    clear = [(metric, change) for metric in metrics for change in metric.changes if change.difference.clear]
    if not clear:
        return "No metric has clearly changed in this time."
    clear.sort(key=lambda pair: (not pair[1].worse, -abs(pair[1].difference.value)))
    sentences = [
        f"{shorten(metric.metric, 80)} {_verb(change)} from {change.difference.first:.2f} to "
        f"{change.difference.second:.2f}, {_since(change)}."
        for metric, change in clear[:_NAMED]
    ]
    if len(clear) > _NAMED:
        sentences.append(f"{len(clear) - _NAMED} more have changed.")
    elif len({metric.metric for metric, _ in clear}) < len(metrics):
        sentences.append("No other metric has clearly changed.")
    return " ".join(sentences)


def _verb(change: ChangeFigure) -> str:
    verb = "fell" if change.difference.value < 0 else "rose"
    return verb if change.until is None else f"{verb} slowly"


def _since(change: ChangeFigure) -> str:
    """The day, and the hour where the time does not begin with a day."""
    if change.until is None:
        return f"since {_time(change.since)}"
    return f"between {_time(change.since)} and {_time(change.until)}"


def _time(at: float) -> str:
    form = "%Y-%m-%d" if at % _DAY == 0 else "%Y-%m-%d %H:%M"
    return datetime.fromtimestamp(at, UTC).strftime(form)
