"""From a database's answers to the figures of a report."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.diagnosis import MENDS
from steelyard.report._findings import look_closer
from steelyard.report._people import human_agreement
from steelyard.report._screens import TimeAxis, change_figures, groups_with_screen, with_screen
from steelyard.report._sums import added_up
from steelyard.report.figures import (
    CauseFigure,
    ChangeFigure,
    GroupFigure,
    MetricFigure,
    Point,
    ReportFigures,
    Shown,
    WorstTurns,
)
from steelyard.report.labels import LabelStore
from steelyard.report.period import bucket_width
from steelyard.report.queries import Funnel, Missing, Scope, ScoresInTime, ScreenedTurns, Sums, Totals
from steelyard.report.stores._tables import ResultsReader, scores_in_time
from steelyard.scores import CAUSES, Direction
from steelyard.stats import (
    FEW,
    Alike,
    Moments,
    Sample,
    alike_by,
    difference_of,
    ewma,
    find_changes,
    sample_of,
)

_WORST = 6
_GROUPS = 12
_HALF_LIFE = 7.0
_FALSE_CHANGES = 0.02
# The latest scores alone tell of sessions and changes beyond so many: reading them takes a second.
_IN_TIME = 300_000
_BRIEF = 12_000
_SCREENED = 1_000_000
"""Turns that screens saw; beyond so many, figures are those of the judge alone."""
_BRIEFLY_SCREENED = 200_000


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
        brief: Of a metric with more than 12,000 scores, go by so many, spread over the whole time; leave out
            usage, worst turns, how the scores were made, groups and slices.

    Raises:
        ConfigurationError: If the database cannot be read.
    """
    scope = scope or Scope()
    totals = reader.totals(scope, brief=brief)
    first, last = totals.first or 0.0, totals.last or 0.0
    width = bucket_width(max(last - first, 1.0))
    start = first // width * width
    every: Mapping[str, int] = {}
    if brief:
        rows, every = reader.spread(scope, totals.turns, most=_BRIEF)
        sums = added_up(rows, start=start, width=width)
        in_time = (scores_in_time(rows),) * 2
    else:
        sums = reader.sums(scope, start=start, width=width, by=by)
        in_time = _in_time(reader, scope, sums.over_time, limit=_IN_TIME)
    funnel = reader.funnel(scope)
    missing = tuple(reader.missing(scope))
    axis = _TimeAxis(start, width, *in_time, every)
    metrics = _metrics(sums.over_time, axis, funnel, missing)
    turns = _screened_turns(reader, scope, brief=brief)
    metrics = _assisted(metrics, turns, start, width)
    read = () if brief else _worst_turns(reader, scope, metrics, worst)
    findings, slices = ((), ()) if brief else look_closer(reader, scope, metrics, turns)
    groups = _groups(sums.by_group, metrics)
    groups = groups_with_screen(groups, turns, lambda: reader.groups_of(scope, by), by=by)
    notes = _notes(scope, totals, metrics, missing)
    if by and not groups:
        notes.append(f"no turn has a {by}: nothing to compare")
    return ReportFigures(
        source=reader.name,
        made_at=time.time(),
        width=width,
        totals=totals,
        metrics=_with_shown(metrics, read),
        missing=missing,
        funnel=funnel,
        made=() if brief else tuple(reader.made(scope)),
        worst=read,
        by=by,
        groups=groups,
        causes=_causes(reader.causes(scope)),
        every=max(every.values(), default=1),
        findings=findings,
        slices=slices,
        people=() if labels is None or brief else human_agreement(reader, labels, scope, metrics),
        notes=tuple(notes),
    )


def _in_time(
    reader: ResultsReader, scope: Scope, sums: Sequence[Sums], *, limit: int
) -> tuple[dict[str, ScoresInTime], dict[str, ScoresInTime]]:
    """The latest scores, and as many that are spread over the whole time."""
    latest = reader.in_time(scope, limit=limit)
    count = sum(one.values.n for one in sums)
    if count <= limit:
        return latest, latest
    # What the latest say of how alike neighbours are holds for all; where anything changed, it does not.
    return latest, reader.in_time(scope, limit=limit, every=math.ceil(count / limit))


def _screened_turns(reader: ResultsReader, scope: Scope, *, brief: bool) -> dict[str, ScreenedTurns]:
    return reader.screened(scope, limit=_BRIEFLY_SCREENED if brief else _SCREENED)


def _assisted(
    metrics: Sequence[MetricFigure], turns: Mapping[str, ScreenedTurns], start: float, width: float
) -> tuple[MetricFigure, ...]:
    """The figures with a screen's help, where one saw turns of a metric and all of them could be read."""
    axis = TimeAxis(start, width, 1 - _FALSE_CHANGES / max(len(metrics), 1))
    return tuple(with_screen(one, turns[one.metric], axis) if one.metric in turns else one for one in metrics)


def _causes(counts: Mapping[str, int]) -> tuple[CauseFigure, ...]:
    total = sum(counts.values())
    return tuple(
        CauseFigure(cause=cause, turns=counts[cause], share=counts[cause] / total, mend=MENDS[cause])
        for cause in sorted(CAUSES, key=lambda one: -counts.get(one, 0))
        if counts.get(cause)
    )


def _metrics(
    sums: Sequence[Sums],
    axis: _TimeAxis,
    funnel: Funnel | None,
    missing: Sequence[Missing],
) -> tuple[MetricFigure, ...]:
    floor = None if funnel is None else funnel.floor
    by_name: defaultdict[str, list[Sums]] = defaultdict(list)
    for one in sums:
        by_name[one.metric].append(one)
    # Of all metrics together: who sees twenty of them must not be told of a fall for nothing each time.
    level = 1 - _FALSE_CHANGES / max(len(by_name), 1)
    return tuple(_metric(parts, axis, level, floor, missing) for _, parts in sorted(by_name.items()))


@dataclass(frozen=True, slots=True)
class _TimeAxis:
    start: float
    width: float
    latest: Mapping[str, ScoresInTime]
    spread: Mapping[str, ScoresInTime]
    every: Mapping[str, int]
    """By metric, how many scores each one stands for, where not all were read."""


def _metric(
    parts: Sequence[Sums],
    axis: _TimeAxis,
    level: float,
    floor: float | None,
    missing: Sequence[Missing],
) -> MetricFigure:
    values, passes = Moments(), Moments()
    for part in parts:
        values.merge(part.values)
        passes.merge(part.passes)
    bars = np.sum([part.bars for part in parts], axis=0)
    scores = axis.latest.get(parts[-1].metric)
    alike: Alike
    alike, sample = ("no", None) if scores is None else _sample(scores)
    effect = 1.0 if sample is None else _design_effect(sample)
    # A day on which only suspicious turns were picked says little of the others: the floor tells it so.
    floor = min(values.least, (floor or 1.0) / axis.every.get(parts[-1].metric, 1))
    if sample is not None and len(sample) == values.n:
        estimate = sample.estimate(floor=floor)
    else:
        estimate = values.estimate(floor=floor, design_effect=effect)
    assert estimate is not None
    ordered = sorted(parts, key=lambda part: part.bucket)
    spread = axis.spread.get(parts[-1].metric)
    among = sample if spread is None or spread is scores else _sample(spread)[1]
    points = [
        Point(time=axis.start + part.bucket * axis.width, estimate=found)
        for part in ordered
        if (found := part.values.estimate(floor=floor, design_effect=effect)) is not None
    ]
    return MetricFigure(
        metric=parts[-1].metric,
        direction=parts[-1].direction,
        threshold=parts[-1].threshold,
        estimate=estimate,
        pass_rate=passes.estimate(floor=floor, design_effect=effect),
        points=tuple(points),
        smooth=tuple(
            ewma(
                [point.estimate.value for point in points],
                [1 / part.values.weight for part in ordered],
                half_life=_HALF_LIFE,
            ).tolist()
        ),
        changes=_changes(spread, among, axis.width, level, ordered[-1].direction),
        shares=tuple((bars / values.weight).tolist()),
        stands_for=values.weight,
        unequal=values.effective_n < 0.999 * values.n,
        alike=alike,
        design_effect=effect,
        missing=_missing_share(parts[-1].metric, values, missing),
    )


def _worst_turns(
    reader: ResultsReader, scope: Scope, metrics: Sequence[MetricFigure], limit: int
) -> tuple[WorstTurns, ...]:
    return tuple(
        WorstTurns(metric=one.metric, turns=tuple(reader.worst(scope, one.metric, limit=limit)))
        for one in metrics
    )


def _with_shown(metrics: Sequence[MetricFigure], worst: Sequence[WorstTurns]) -> tuple[MetricFigure, ...]:
    return tuple(replace(one, shows=_shows(one.metric, worst)) for one in metrics)


def _shows(metric: str, worst: Sequence[WorstTurns]) -> Shown | None:
    """Which value the scores of a metric have, by the turns that were read."""
    found: set[Shown] = {
        "verdicts" if turn[metric].hard_value is None else "expectation"
        for one in worst
        if one.metric == metric
        for turn in one.turns
    }
    return "both" if len(found) > 1 else next(iter(found), None)


def _missing_share(metric: str, values: Moments, missing: Sequence[Missing]) -> float:
    """Which share of the turns that a metric applies to has no value."""
    lost = sum(
        # Only counted, each may stand for as many turns as any other.
        one.count / values.least if one.weight is None else one.weight
        for one in missing
        if one.metric == metric and one.might_have_one
    )
    return lost / (lost + values.weight)


def _sample(scores: ScoresInTime) -> tuple[Alike, Sample]:
    """The scores of one metric, and what turns are alike by."""
    alike, units = alike_by(scores.units, scores.values, scores.inclusion)
    return alike, sample_of(scores.values, scores.inclusion, units)


def _design_effect(sample: Sample) -> float:
    """How many times the variance is what it would be if turns were independent."""
    estimate = sample.estimate()
    assert estimate is not None
    weights = sample.weights
    return max(float(weights.sum() ** 2 / (weights @ weights)) / estimate.effective_n, 1.0)


def _changes(
    scores: ScoresInTime | None, sample: Sample | None, width: float, level: float, direction: Direction
) -> tuple[ChangeFigure, ...]:
    if scores is None or sample is None:
        return ()
    return change_figures(find_changes(sample, scores.times, width=width, level=level), direction)


def _groups(sums: Sequence[Sums], metrics: Sequence[MetricFigure]) -> tuple[GroupFigure, ...]:
    """Each metric's groups, the largest ones, each beside the first by name."""
    by_name: defaultdict[str, list[Sums]] = defaultdict(list)
    for one in sums:
        if one.group:
            by_name[one.metric].append(one)
    figures = []
    effects = {one.metric: one.design_effect for one in metrics}
    for metric, parts in sorted(by_name.items()):
        largest = sorted(parts, key=lambda part: -part.values.n)[:_GROUPS]
        # A group in which only suspicious turns were picked says little of its others.
        least = min(part.values.least for part in parts)
        ordered = sorted(largest, key=lambda part: part.group or "")
        for index, part in enumerate(ordered):
            estimate = part.values.estimate(floor=least, design_effect=effects[metric])
            assert estimate is not None and part.group is not None
            figures.append(
                GroupFigure(
                    metric=metric,
                    direction=part.direction,
                    group=part.group,
                    estimate=estimate,
                    difference=difference_of(ordered[0].values, part.values, design_effect=effects[metric])
                    if index
                    else None,
                )
            )
    return tuple(figures)


def _unscored(metrics: Sequence[MetricFigure], missing: Sequence[Missing]) -> list[str]:
    """Why there is no figure, where there is none."""
    if metrics:
        return []
    if not missing:
        return ["The judge has scored no turn yet."]
    return ["No score has a value: every one failed or was not applicable; the reasons are below."]


def _notes(
    scope: Scope, totals: Totals, metrics: Sequence[MetricFigure], missing: Sequence[Missing]
) -> list[str]:
    notes = []
    if not totals.turns:
        if scope != Scope():
            return ["There are no evaluated turns of this time, metric, tag and evidence."]
        return ["There are no evaluated turns here yet. A Monitor writes each as soon as it is judged."]
    notes += _unscored(metrics, missing)
    if totals.turns < FEW:
        rests = "1 turn" if totals.turns == 1 else f"{totals.turns} turns"
        notes.append(f"All of this rests on {rests}; with fewer than {FEW} it says little.")
    if any(one.alike == "order" for one in metrics):
        notes.append(
            "No turn says which session it is of, and neighbours resemble each other: how much was estimated "
            "from the order of turns."
        )
    if not totals.with_content:
        notes.append("Questions and answers were not stored, so that turns cannot be opened.")
    if any(one.cause == "missing_reference" for one in missing):
        notes.append("Some metrics need a reference answer, and some turns have none.")
    return notes
