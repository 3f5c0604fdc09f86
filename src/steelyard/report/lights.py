"""A light and a sentence for each metric, the most important first: what a reader looks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from steelyard._internal.text import shorten, utc
from steelyard.diagnosis import MENDS
from steelyard.report._findings import worth_of
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
    verb, by, since = _moved(change)
    return f"{verb} by {abs(change.difference.value):.2f} ({by}) {since}"


def _moved(one: ChangeFigure | FindingFigure) -> tuple[str, str, str]:
    """What it did, by how much at least and at most, and when."""
    found = one.difference
    least, most = sorted((abs(found.low), abs(found.high)))
    verb, by = "fell" if found.value < 0 else "rose", f"{least:.2f} to {most:.2f}"
    if one.until is None:
        return verb, by, f"since {_time(one.since)}"
    return f"{verb} slowly", by, f"between {_time(one.since)} and {_time(one.until)}"


def what_words(finding: FindingFigure) -> str:
    """What changed, in which turns, since when and by how much."""
    found = finding.difference
    verb, by, since = _moved(finding)
    fell = f"{shorten(finding.metric, 80)} {verb} from {found.first:.2f} to {found.second:.2f} (by {by})"
    if finding.until is None and finding.earliest != finding.latest:
        since += f" ({_time(finding.earliest)} to {_time(finding.latest)})"
    if finding.beside:
        return f"{fell} with {shorten(finding.beside, 80)}, in the same turns {since}."
    turns = f": about {finding.turns:,.0f} turns since then" if finding.until is None else ""
    return f"{fell} {_where(finding)} {since}{turns}."


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

    Empty where it is told already, and of a drift, which has no such moment.
    """
    if finding.beside or finding.until is not None:
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
    return utc(at, form)


State = Literal["worse", "low", "better", "steady", "unknown"]
WORDS: Final[dict[State, str]] = {
    "worse": "Worse",
    "low": "Low",
    "better": "Better",
    "steady": "Holds",
    "unknown": "Too early to tell",
}
"""What each light says, the most urgent first."""
_HALF: Final = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricNews:
    """One thing that is told of a metric."""

    what: str
    """What changed, in which turns, since when and by how much."""
    why: str = ""
    """From what cause, and what mends it; empty where nothing tells."""
    deploy: str = ""
    """Which version came into use then."""
    since: float | None = None
    """Since when, as Unix time."""
    slice: tuple[str, str] | None = None
    """Attribute and value of the turns that are meant; None of all."""
    worst: tuple[str, ...] = ()
    """Records of the worst turns since then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Light:
    """One metric at a glance."""

    metric: MetricFigure
    place: int
    """Its place among all metrics, by which its chart is found."""
    state: State
    told: tuple[MetricNews, ...]
    """What is said of it, at least one thing."""

    @property
    def word(self) -> str:
        return WORDS[self.state]


def lights_of(metrics: Sequence[MetricFigure], findings: Sequence[FindingFigure] = ()) -> tuple[Light, ...]:
    """A light for each metric: what got worse first, then what is low; answers before retrieval."""
    lights = [
        _light(metric, place, [one for one in findings if one.metric == metric.metric])
        for place, metric in enumerate(metrics)
    ]
    harm = {one.metric: place for place, one in reversed(list(enumerate(findings)))}
    order = list(WORDS)

    def urgency(light: Light) -> tuple[float, ...]:
        metric = light.metric
        passed = metric.pass_rate.value if metric.pass_rate else 1.0
        rank = harm.get(metric.metric, len(findings))
        return order.index(light.state), rank, -worth_of(metric.metric), passed, light.place

    return tuple(sorted(lights, key=urgency))


def verdict_of(lights: Sequence[Light]) -> str:
    """Whether it is fine, in a sentence."""
    names: defaultdict[State, list[str]] = defaultdict(list)
    for one in lights:
        names[one.state].append(shorten(one.metric.metric, 60))
    if not lights:
        return "Nothing has been scored yet"
    if worse := names["worse"]:
        rest = len(lights) - len(worse)
        holding = rest == len(names["steady"]) + len(names["better"])
        others = "; the other holds" if rest == 1 else f"; the other {rest} hold"
        return f"{_listed(worse)} got worse{others if rest and holding else ''}"
    if low := names["low"]:
        return f"Nothing got worse, but {_listed(low)} {'is' if len(low) == 1 else 'are'} low"
    if unknown := len(names["unknown"]):
        every = unknown == len(lights)
        return "Too few turns to tell yet" if every else "Nothing got worse, as far as can be told"
    few = {1: f"{shorten(lights[0].metric.metric, 60)} holds", 2: "Both metrics hold"}
    return few.get(len(lights), f"All {len(lights)} metrics hold")


def _listed(names: Sequence[str]) -> str:
    if len(names) > 3:
        return f"{names[0]} and {len(names) - 1} other metrics"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _light(metric: MetricFigure, place: int, found: Sequence[FindingFigure]) -> Light:
    clear = [change for change in metric.changes if change.difference.clear]
    told = [
        MetricNews(
            what=what_words(one),
            why=cause_words(one),
            deploy=deploy_words(one),
            since=one.since,
            slice=one.names[0] if one.names else None,
            worst=one.worst,
        )
        for one in found
    ] or [_of_metric(metric, clear)]
    state = _state(metric, [one.worse for one in found or clear])
    return Light(metric=metric, place=place, state=state, told=tuple(told))


def _state(metric: MetricFigure, got_worse: Sequence[bool]) -> State:
    if any(got_worse):
        return "worse"
    if metric.pass_rate is not None and metric.pass_rate.high < _HALF:
        return "low"
    if got_worse:
        return "better"
    return "steady" if metric.changes else "unknown"


def _of_metric(metric: MetricFigure, clear: Sequence[ChangeFigure]) -> MetricNews:
    passing = metric.pass_rate
    passes = "" if passing is None else f"; {100 * passing.value:.0f} % of turns pass"
    since = max((one.since for one in clear), default=None)
    said = change_words(metric)
    return MetricNews(what=f"{said[0].upper()}{said[1:]}{passes}.", since=since)
