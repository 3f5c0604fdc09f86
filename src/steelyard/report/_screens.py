"""Figures of metrics that a screen scored too: the judge's means, made more exact by what the screen said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard.report.figures import ChangeFigure, GroupFigure, MetricFigure, Point, ScreenFigure
from steelyard.results.queries import ScreenedTurns
from steelyard.scores import Direction
from steelyard.stats import (
    Alike,
    AssistedSample,
    Estimate,
    Sample,
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
    """The judge's values over all turns that it or the screen saw, and what turns are alike by."""
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


def course_of(
    sample: Sample | AssistedSample,
    times: npt.NDArray[np.float64],
    axis: TimeAxis,
    direction: Direction,
    *,
    alike: Alike,
    floor: float,
    known: Sequence[Point] = (),
) -> dict[str, Any]:
    """What a metric did over time: its points, their average and its changes, as fields of `MetricFigure`.

    `known` are points that stand where this sample tells nothing; all pieces of time with a turn if empty.
    """
    pieces = ((times - axis.start) // axis.width).astype(np.int64)
    estimates = {round((one.time - axis.start) / axis.width): one.estimate for one in known}
    parts = {int(piece): sample.part(pieces == piece) for piece in estimates or np.unique(pieces)}
    points = [
        Point(time=axis.start + piece * axis.width, estimate=estimate)
        for piece, part in parts.items()
        if (estimate := part.estimate(floor=floor) or estimates.get(piece)) is not None
    ]
    smooth = ewma(
        [point.estimate.value for point in points],
        [1 / max(part.weight, 1.0) for part in parts.values()],
        half_life=_HALF_LIFE,
    )
    found = find_changes(
        sample, times, width=axis.width, level=axis.level, sessions_known=alike == "sessions"
    )
    changes = (
        ChangeFigure(
            since=change.since,
            until=change.until,
            difference=change.difference,
            worse=(change.difference.value < 0) == (direction == "higher"),
        )
        for change in found
    )
    return {
        **{"points": tuple(points), "smooth": tuple(smooth.tolist()), "changes": tuple(changes)},
        "stands_for": sample.weight,
    }


def with_screen(figure: MetricFigure, turns: ScreenedTurns, axis: TimeAxis) -> MetricFigure:
    """The figure of a metric, more exact by what the screen said of its turns."""
    if not np.isfinite(turns.said).any():
        return figure
    alike, sample = sample_with_screen(turns)
    floor = min(sample.least, 1.0)
    estimate = sample.estimate(floor=floor)
    if estimate is None:
        return figure
    passes = None
    if figure.pass_rate is not None:
        units = None if sample.units is None else sample.units.tolist()
        passes = _sample(turns, units, passes=True).estimate(floor=floor)
    return replace(
        figure,
        estimate=estimate,
        pass_rate=passes or figure.pass_rate,
        alike=alike,
        screen=_screen(turns, sample, figure.estimate),
        **course_of(
            sample, turns.times, axis, figure.direction, alike=alike, floor=floor, known=figure.points
        ),
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
    figures: Sequence[GroupFigure], turns: Mapping[str, ScreenedTurns], inside: Mapping[str, Sequence[str]]
) -> tuple[GroupFigure, ...]:
    """Figures of groups, more exact by what the screen said."""
    found: list[GroupFigure] = []
    firsts: dict[str, AssistedSample] = {}
    samples = {metric: sample_with_screen(one)[1] for metric, one in turns.items()}
    for figure in figures:
        if (sample := samples.get(figure.metric)) is not None:
            records = turns[figure.metric].records
            part = sample.part(np.array([figure.group in inside.get(one, ()) for one in records], bool))
            first = firsts.setdefault(figure.metric, part)
            if (estimate := part.estimate()) is not None:
                difference = figure.difference and (sample_difference(first, part) or figure.difference)
                figure = replace(figure, estimate=estimate, difference=difference)
        found.append(figure)
    return tuple(found)
