"""A light and a sentence for each metric, the most important first: what a reader looks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from steelyard._internal.text import shorten
from steelyard.report._findings import worth_of
from steelyard.report.figures import ChangeFigure, FindingFigure, MetricFigure
from steelyard.report.page._changes import cause_words, change_words, deploy_words, what_words

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
    """Its figures."""
    place: int
    """Its place among all metrics, by which its chart is found."""
    state: State
    """How it does."""
    told: tuple[MetricNews, ...]
    """What is said of it, at least one thing."""

    @property
    def word(self) -> str:
        """The state in words."""
        return WORDS[self.state]


def lights_of(metrics: Sequence[MetricFigure], findings: Sequence[FindingFigure] = ()) -> tuple[Light, ...]:
    """A light for each metric: what got worse first, then what is low; answers before retrieval.

    Args:
        metrics: The metrics, in any order.
        findings: What a closer look found, the most harmful first; it takes the place of what the metric as a
            whole did.
    """
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
    return f"{shorten(lights[0].metric.metric, 60)} holds" if len(lights) == 1 else _all(len(lights))


def _all(count: int) -> str:
    return "Both metrics hold" if count == 2 else f"All {count} metrics hold"


def _listed(names: Sequence[str]) -> str:
    if len(names) > 3:
        return f"{names[0]} and {len(names) - 1} other metrics"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _light(metric: MetricFigure, place: int, found: Sequence[FindingFigure]) -> Light:
    clear = [change for change in metric.changes if change.difference.clear]
    told = [_of_finding(one) for one in found] or [_of_metric(metric, clear)]
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


def _of_finding(one: FindingFigure) -> MetricNews:
    return MetricNews(
        what=what_words(one),
        why=cause_words(one),
        deploy=deploy_words(one),
        since=one.since,
        slice=one.names[0] if one.names else None,
        worst=one.worst,
    )


def _of_metric(metric: MetricFigure, clear: Sequence[ChangeFigure]) -> MetricNews:
    passing = metric.pass_rate
    passes = "" if passing is None else f"; {100 * passing.value:.0f} % of turns pass"
    since = max((one.since for one in clear), default=None)
    said = change_words(metric)
    return MetricNews(what=f"{said[0].upper()}{said[1:]}{passes}.", since=since)
