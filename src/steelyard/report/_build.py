"""From a database's answers to the figures of a report."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from steelyard.report._people import people_of
from steelyard.report._slices import slices_of
from steelyard.report.figures import (
    ChangeFigure,
    GroupFigure,
    MetricFigure,
    Point,
    ReportFigures,
    WorstTurns,
)
from steelyard.report.labels import LabelStore
from steelyard.report.period import bucket_width
from steelyard.report.queries import Missing, ResultsReader, Scope, Sums, Totals
from steelyard.stats import FEW, Moments, change_point, difference_of, ewma

_WORST = 6
_GROUPS = 12
_HALF_LIFE = 7.0
_FALSE_CHANGES = 0.05


def build_figures(
    reader: ResultsReader,
    scope: Scope | None = None,
    *,
    by: str | None = None,
    worst: int = _WORST,
    brief: bool = False,
    labels: LabelStore | None = None,
) -> ReportFigures:
    """Ask a database for everything a report shows.

    Args:
        reader: The database.
        scope: Which results; all where None.
        by: What to cut groups by: `tag`, `judge`, `framework` or a metadata field such as `version`.
        worst: How many of the worst turns to show for each metric.
        labels: What people said, to hold the scores against; None to leave that out.
        brief: Leave out what takes a look at many scores one by one: usage, worst turns, how the scores were
            made, and slices.

    Raises:
        ConfigurationError: If the database cannot be read.
    """
    scope = scope or Scope()
    totals = reader.totals(scope, brief=brief)
    first, last = totals.first or 0.0, totals.last or 0.0
    width = bucket_width(max(last - first, 1.0))
    start = first // width * width
    sums = reader.sums(scope, start=start, width=width, by=by)
    metrics = _metrics(sums.over_time, start, width)
    missing = tuple(reader.missing(scope))
    groups = _groups(sums.by_group)
    notes = _notes(scope, totals, metrics, missing)
    if by and not groups:
        notes.append(f"no turn has a {by}: nothing to compare")
    return ReportFigures(
        source=reader.name,
        made_at=time.time(),
        width=width,
        totals=totals,
        metrics=metrics,
        missing=missing,
        funnel=reader.funnel(scope),
        made=() if brief else tuple(reader.made(scope)),
        worst=tuple(
            WorstTurns(metric=one.metric, turns=tuple(reader.worst(scope, one.metric, limit=worst)))
            for one in metrics
            if not brief
        ),
        by=by,
        groups=groups,
        slices=() if brief else slices_of(reader, scope, metrics),
        people=() if labels is None or brief else people_of(reader, labels, scope, metrics),
        notes=tuple(notes),
    )


def _metrics(sums: Sequence[Sums], start: float, width: float) -> tuple[MetricFigure, ...]:
    by_name: defaultdict[str, list[Sums]] = defaultdict(list)
    for one in sums:
        by_name[one.metric].append(one)
    # Of all metrics together: who sees twenty of them must not be told of a fall for nothing each time.
    level = 1 - _FALSE_CHANGES / max(len(by_name), 1)
    return tuple(_metric(parts, start, width, level) for _, parts in sorted(by_name.items()))


def _metric(parts: Sequence[Sums], start: float, width: float, level: float) -> MetricFigure:
    values, passes = Moments(), Moments()
    for part in parts:
        values.merge(part.values)
        passes.merge(part.passes)
    bars = np.sum([part.bars for part in parts], axis=0)
    estimate = values.estimate()
    assert estimate is not None
    ordered = sorted(parts, key=lambda part: part.bucket)
    points = [
        Point(time=start + part.bucket * width, estimate=found)
        for part in ordered
        # A day on which only suspicious turns were picked says little of the others: the floor tells it so.
        if (found := part.values.estimate(floor=values.least)) is not None
    ]
    return MetricFigure(
        metric=parts[-1].metric,
        direction=parts[-1].direction,
        threshold=parts[-1].threshold,
        estimate=estimate,
        pass_rate=passes.estimate(),
        points=tuple(points),
        smooth=tuple(
            ewma(
                [point.estimate.value for point in points],
                [1 / part.values.weight for part in ordered],
                half_life=_HALF_LIFE,
            ).tolist()
        ),
        change=_change(ordered, start, width, level),
        shares=tuple((bars / values.weight).tolist()),
        stands_for=values.weight,
        unequal=values.effective_n < 0.999 * values.n,
    )


def _change(ordered: Sequence[Sums], start: float, width: float, level: float) -> ChangeFigure | None:
    found = change_point([part.values for part in ordered], level=level)
    if found is None:
        return None
    return ChangeFigure(
        since=start + ordered[found.index].bucket * width,
        difference=found.difference,
        worse=(found.difference.value < 0) == (ordered[-1].direction == "higher"),
    )


def _groups(sums: Sequence[Sums]) -> tuple[GroupFigure, ...]:
    """Each metric's groups, the largest ones, each beside the first by name."""
    by_name: defaultdict[str, list[Sums]] = defaultdict(list)
    for one in sums:
        if one.group:
            by_name[one.metric].append(one)
    figures = []
    for metric, parts in sorted(by_name.items()):
        largest = sorted(parts, key=lambda part: -part.values.n)[:_GROUPS]
        # A group in which only suspicious turns were picked says little of its others.
        least = min(part.values.least for part in parts)
        ordered = sorted(largest, key=lambda part: part.group or "")
        for index, part in enumerate(ordered):
            estimate = part.values.estimate(floor=least)
            assert estimate is not None and part.group is not None
            figures.append(
                GroupFigure(
                    metric=metric,
                    direction=part.direction,
                    group=part.group,
                    estimate=estimate,
                    difference=difference_of(ordered[0].values, part.values) if index else None,
                )
            )
    return tuple(figures)


def _notes(
    scope: Scope, totals: Totals, metrics: Sequence[MetricFigure], missing: Sequence[Missing]
) -> list[str]:
    notes = []
    if not totals.turns:
        if scope != Scope():
            return ["There are no evaluated turns of this time, metric and tag."]
        return ["There are no evaluated turns here yet. A Monitor writes each as soon as it is judged."]
    if not metrics:
        notes.append("No score has a value: every one failed or was not applicable; the reasons are below.")
    if totals.turns < FEW:
        rests = "1 turn" if totals.turns == 1 else f"{totals.turns} turns"
        notes.append(f"All of this rests on {rests}; with fewer than {FEW} it says little.")
    if not totals.with_content:
        notes.append("Questions and answers were not stored, so that turns cannot be opened.")
    if any(one.cause == "missing_reference" for one in missing):
        notes.append("Some metrics need a reference answer, and some turns have none.")
    return notes
