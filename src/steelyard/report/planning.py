"""What a wished interval costs a day: with the judge alone, and with a screen beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.report._build import build_figures
from steelyard.report.figures import MetricFigure
from steelyard.results import ResultsReader
from steelyard.results.queries import Scope

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
    turns: float
    """Turns a day of the application, by what is stored."""
    alone: Way
    """The judge alone, on turns picked at random."""
    screened: Way | None
    """With the screen that is in the results, on every turn; None where none is, or too little was judged."""


_Price = npt.NDArray[np.float64]
"""What a turn takes: requests and US dollars; NaN where nothing tells."""


def plan_judging(
    reader: ResultsReader, scope: Scope | None = None, *, margin: float, days: float = 7.0
) -> list[MetricPlan]:
    """What a half-width of each metric's mean over some days takes a day, by what is in the results.

    The half-width of an interval shrinks with the root of the turns that are judged. What is stored tells it
    for the turns that were judged, with the screen's help and without; so it is known for any other number.
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
        screened = _way(judged, turns, dear, turns * cheap)
    return MetricPlan(metric=figure.metric, turns=turns, alone=_way(alone, turns, dear), screened=screened)


def _way(judged: float, turns: float, dear: _Price, screened: _Price | None = None) -> Way:
    requests, cost = min(judged, turns) * dear + (np.zeros(2) if screened is None else screened)
    return Way(
        judged=judged,
        requests=None if np.isnan(requests) else float(requests),
        cost=None if np.isnan(cost) else float(cost),
        reaches=judged <= turns,
    )


def _prices(reader: ResultsReader, scope: Scope) -> tuple[_Price, _Price]:
    """What a turn takes of the judge, and of the screen."""
    found = {(judged, seen): np.array(price, float) for judged, seen, *price in reader.spent(scope)}
    cheap = found.get((False, True), np.zeros(2))
    # The local judge asks nobody, and costs nothing.
    cheap = cheap if cheap[0] else np.zeros(2)
    if (both := found.get((True, True))) is not None:
        return np.maximum(both - cheap, 0.0), cheap
    return found.get((True, False), np.full(2, np.nan)), cheap
