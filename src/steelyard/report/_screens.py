"""Figures of metrics that a screen scored too: the judge's means, made more exact by what the screen said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.report.figures import ChangeFigure, GroupFigure, MetricFigure, Point, ScreenFigure
from steelyard.report.queries import ScreenedTurns
from steelyard.scores import Direction
from steelyard.stats import (
    Alike,
    AssistedSample,
    Change,
    Estimate,
    alike_by,
    assisted_sample,
    ewma,
    find_changes,
    sample_difference,
    weighted_mean,
)

_HALF_LIFE = 7.0


def sample_with_screen(
    turns: ScreenedTurns, sessions: Sequence[object] | None = None
) -> tuple[Alike, AssistedSample]:
    """The judge's values over all turns that it or the screen saw, and what turns are alike by.

    Args:
        turns: All that the screen or the judge scored.
        sessions: What they are alike by, if that is known already.
    """
    if sessions is not None:
        return "sessions", _sample(turns, sessions)
    first = _sample(turns, None)
    alike, units = alike_by(turns.units.tolist(), first.values, 1 / first.weights)
    return alike, first if units is None else _sample(turns, units)


def _sample(turns: ScreenedTurns, units: Sequence[object] | None, *, passes: bool = False) -> AssistedSample:
    values = turns.passed if passes else turns.judged
    return assisted_sample(
        turns.said, turns.screened, values, turns.inclusion, makes=turns.makes.tolist(), sessions=units
    )


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Pieces of time."""

    start: float
    """Unix time at which the first one starts."""
    width: float
    """Seconds each lasts."""
    level: float
    """Nominal coverage of changes on it."""


def change_figures(found: Sequence[Change], direction: Direction) -> tuple[ChangeFigure, ...]:
    """Changes of a metric, each with whether it is for the worse."""
    return tuple(
        ChangeFigure(
            since=change.since,
            until=change.until,
            difference=change.difference,
            worse=(change.difference.value < 0) == (direction == "higher"),
        )
        for change in found
    )


def with_screen(figure: MetricFigure, turns: ScreenedTurns, axis: TimeAxis) -> MetricFigure:
    """The figure of a metric, more exact by what the screen said.

    Args:
        figure: Without the screen.
        turns: All that the screen or the judge scored by this metric.
        axis: The pieces of time.
    """
    if not np.isfinite(turns.said).any():
        return figure
    alike, sample = sample_with_screen(turns)
    floor = min(sample.least, 1.0)
    estimate = sample.estimate(floor=floor)
    if estimate is None:
        return figure
    pieces = ((turns.times - axis.start) // axis.width).astype(np.int64)
    parts = [sample.part(pieces == round((one.time - axis.start) / axis.width)) for one in figure.points]
    changes = find_changes(sample, turns.times, width=axis.width, level=axis.level)
    points = [
        Point(time=point.time, estimate=part.estimate(floor=floor) or point.estimate)
        for point, part in zip(figure.points, parts, strict=True)
    ]
    passes = None
    if figure.pass_rate is not None:
        units = None if sample.units is None else sample.units.tolist()
        passes = _sample(turns, units, passes=True).estimate(floor=floor)
    weights = [part.weight for part in parts]
    return replace(
        figure,
        estimate=estimate,
        pass_rate=passes or figure.pass_rate,
        points=tuple(points),
        smooth=tuple(
            ewma(
                [one.estimate.value for one in points],
                [1 / max(one, 1.0) for one in weights],
                half_life=_HALF_LIFE,
            ).tolist()
        ),  # fmt: skip
        changes=change_figures(changes, figure.direction),
        stands_for=sample.weight,
        alike=alike,
        screen=_screen(turns, sample, figure.estimate),
    )


def _screen(turns: ScreenedTurns, sample: AssistedSample, alone: Estimate) -> ScreenFigure:
    seen = np.isfinite(turns.said)
    units = turns.units[seen].tolist()
    cheap = weighted_mean(turns.said[seen], turns.screened[seen], sessions=units if any(units) else None)
    assert cheap is not None
    return ScreenFigure(
        screens=tuple(sorted({one for one in turns.makes if one})),
        judges=tuple(sorted({one for one in turns.judges if one})),
        cheap=cheap,
        dear=alone,
        worth=max(sample.worth, float(alone.n)),
    )


def groups_with_screen(
    figures: Sequence[GroupFigure],
    turns: Mapping[str, ScreenedTurns],
    inside: Mapping[str, Sequence[str]],
) -> tuple[GroupFigure, ...]:
    """Figures of groups, more exact by what the screen said.

    Args:
        figures: Without the screen.
        turns: By metric, all that the screen or the judge scored.
        inside: By record, the groups it is in.
    """
    found: list[GroupFigure] = []
    firsts: dict[str, AssistedSample] = {}
    samples = {metric: sample_with_screen(one)[1] for metric, one in turns.items()}
    for figure in figures:
        if figure.metric not in samples:
            found.append(figure)
            continue
        members = [figure.group in inside.get(record, ()) for record in turns[figure.metric].records]
        part = samples[figure.metric].part(np.array(members, bool))
        first = firsts.setdefault(figure.metric, part)
        estimate = part.estimate()
        difference = None if figure.difference is None else sample_difference(first, part)
        found.append(
            figure
            if estimate is None
            else replace(figure, estimate=estimate, difference=difference or figure.difference)
        )
    return tuple(found)
