"""What changed, in words: a metric as a whole, or a slice of it, for whoever is called at night."""

from __future__ import annotations

from datetime import UTC, datetime

from steelyard._internal.text import shorten
from steelyard.diagnosis import MENDS
from steelyard.report.figures import ChangeFigure, FindingFigure, MetricFigure

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
    verb = "fell" if found.value < 0 else "rose"
    slowly = "" if change.until is None else " slowly"
    return f"{verb}{slowly} by {abs(found.value):.2f} ({least:.2f} to {most:.2f}) {_since(change)}"


def _since(change: ChangeFigure) -> str:
    """The day, and the hour where the time does not begin with a day."""
    if change.until is None:
        return f"since {_time(change.since)}"
    return f"between {_time(change.since)} and {_time(change.until)}"


def what_words(finding: FindingFigure) -> str:
    """What changed, in which turns, since when and by how much."""
    found = finding.difference
    least, most = sorted((abs(found.low), abs(found.high)))
    verb = "fell" if found.value < 0 else "rose"
    fell = (
        f"{shorten(finding.metric, 80)} {verb} from {found.first:.2f} to {found.second:.2f} (by {least:.2f} "
        f"to {most:.2f})"
    )
    since = f"since {_time(finding.since)}{_span(finding)}"
    if finding.beside:
        return f"{fell} with {shorten(finding.beside, 80)}, in the same turns {since}."
    return f"{fell} {_where(finding)} {since}: about {finding.turns:,.0f} turns since then."


def cause_words(finding: FindingFigure) -> str:
    """What more turns suffer from, and what mends it; empty where nothing tells, or it is told already."""
    if finding.cause is None or finding.beside:
        return ""
    cause, before, since = finding.cause
    return (
        f"More of them suffer from {cause.replace('_', ' ')}: {100 * before:.0f} % before, "
        f"{100 * since:.0f} % since. {MENDS[cause]}"
    )


def deploy_words(finding: FindingFigure) -> str:
    """That other questions are asked, or else which version came into use then, and what nothing tells.

    Empty where it is told already.
    """
    if finding.beside:
        return ""
    if finding.by_mix and finding.within is not None:
        return (
            f"Most of it is that other questions are asked: asked in the earlier mix, it would have changed "
            f"by {finding.within.value:+.2f} ({finding.within.low:+.2f} to {finding.within.high:+.2f})."
        )
    return _deploy_words(finding)


def _where(finding: FindingFigure) -> str:
    if not finding.names:
        return "in all turns"
    first, *others = (f"{shorten(name, 40)}: {shorten(value, 60)}" for name, value in finding.names)
    also = f" (the same turns: {', '.join(others)})" if others else ""
    return f"in {first}{also}, {100 * finding.share:.0f} % of all turns,"


def _span(finding: FindingFigure) -> str:
    if finding.earliest == finding.latest:
        return ""
    return f" ({_time(finding.earliest)} to {_time(finding.latest)})"


def _deploy_words(finding: FindingFigure) -> str:
    """Which version came in then; that something else may have happened at that time is always possible."""
    went = [
        f"{shorten(one.name, 40)} went from {shorten(one.before, 60)} to {shorten(one.value, 60)}"
        for one in finding.deploys
    ]
    if len(went) == 1:
        return f"At that time {went[0]}. What else changed then and is not on the turns cannot be told."
    if went:
        return f"At that time {', '.join(went)}: which of them it was cannot be told."
    if finding.versioned:
        return "No version that the turns carry changed at that time."
    return "The turns carry no version, so that it cannot be told from which deploy it comes."


def _time(at: float) -> str:
    """The day, and the hour where the time does not begin with a day."""
    form = "%Y-%m-%d" if at % _DAY == 0 else "%Y-%m-%d %H:%M"
    return datetime.fromtimestamp(at, UTC).strftime(form)
