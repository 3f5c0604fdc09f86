"""What a wished interval costs a day: with the judge alone, and with a screen beside it."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.report._build import build_figures
from steelyard.report.figures import MetricFigure
from steelyard.report.queries import Scope
from steelyard.report.stores._tables import ResultsReader

_DAY = 86400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way to judge."""

    judged: float
    """Turns a day that the judge scores."""
    requests: float | None
    """Requests a day, those of the screen included; None where nothing tells what a turn takes."""
    cost: float | None
    """US dollars a day, the screen's included; None where no price is known."""
    reaches: bool
    """Whether there are as many turns a day."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricPlan:
    """What a wished interval of one metric takes."""

    metric: str
    """The metric's name."""
    turns: float
    """Turns a day of the application, by what is stored."""
    alone: Way
    """The judge alone, on turns picked at random."""
    screened: Way | None
    """With the screen that is in the results, on every turn; None where none is, or too little was judged."""


@dataclass(frozen=True, slots=True)
class _Price:
    """What a turn takes."""

    requests: float | None
    cost: float | None

    def less(self, other: _Price) -> _Price:
        return _Price(_minus(self.requests, other.requests), _minus(self.cost, other.cost))


def plan_judging(
    reader: ResultsReader, scope: Scope | None = None, *, margin: float, days: float = 7.0
) -> list[MetricPlan]:
    """What a half-width of each metric's mean takes a day, by what is in the results.

    The half-width of an interval shrinks with the root of the turns that are judged. What is stored tells it
    for the turns that were judged, with the screen's help and without; so it is known for any other number.

    Args:
        reader: The results.
        scope: Which of them to go by; all if None.
        margin: The half-width wished, e.g. .02.
        days: The time that the mean is to be of.
    """
    scope = scope or Scope()
    figures = build_figures(reader, scope, brief=True)
    first, last = figures.totals.first or 0.0, figures.totals.last or 0.0
    span = max((last - first) / _DAY, 1.0)
    dear, cheap = _prices(reader, scope)
    return [_plan(one, span, margin, days, dear, cheap) for one in figures.metrics]


def _plan(
    figure: MetricFigure, span: float, margin: float, days: float, dear: _Price, cheap: _Price
) -> MetricPlan:
    turns = figure.stands_for / span
    bare = figure.estimate if figure.screen is None else figure.screen.dear
    # As many turns picked at random tell as much as those that were judged.
    random = bare.effective_n * figure.design_effect
    alone = random * (bare.margin / margin) ** 2 / days
    screened = None
    if figure.screen is not None and figure.estimate.margin < bare.margin:
        judged = figure.estimate.n * (figure.estimate.margin / margin) ** 2 / days
        screened = _way(judged, turns, dear, screens=turns, cheap=cheap)
    return MetricPlan(metric=figure.metric, turns=turns, alone=_way(alone, turns, dear), screened=screened)


def _way(judged: float, turns: float, dear: _Price, screens: float = 0.0, cheap: _Price | None = None) -> Way:
    least = min(judged, turns)
    requests, cost = _times(least, dear.requests), _times(least, dear.cost)
    if cheap is not None:
        requests = _plus(requests, _times(screens, cheap.requests))
        cost = _plus(cost, _times(screens, cheap.cost))
    return Way(judged=judged, requests=requests, cost=cost, reaches=judged <= turns)


def _prices(reader: ResultsReader, scope: Scope) -> tuple[_Price, _Price]:
    """What a turn takes of the judge, and of the screen."""
    spent = reader.spent(scope)
    found = {(judged, seen): _Price(requests, cost) for judged, seen, requests, cost in spent}
    nothing = _Price(0.0, 0.0)
    # The local judge asks nobody, and costs nothing.
    cheap = found.get((False, True), nothing)
    cheap = _Price(cheap.requests, 0.0 if not cheap.requests else cheap.cost)
    if (both := found.get((True, True))) is not None:
        return both.less(cheap), cheap
    return found.get((True, False), _Price(None, None)), cheap


def _times(count: float, one: float | None) -> float | None:
    return None if one is None else count * one


def _plus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one - other, 0.0)
