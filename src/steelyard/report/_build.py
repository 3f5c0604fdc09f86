"""From a database's answers to the figures of a report."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from steelyard._internal.text import counted
from steelyard.diagnosis import MENDS
from steelyard.report._findings import look_closer
from steelyard.report._people import human_agreement
from steelyard.report._screens import TimeAxis, course_of, groups_with_screen, with_screen
from steelyard.report.figures import CauseFigure, GroupFigure, MetricFigure, ReportFigures, Shown, WorstTurns
from steelyard.report.period import bucket_width
from steelyard.results import ResultsReader
from steelyard.results.labels import LabelStore
from steelyard.results.queries import Funnel, MetricScores, Missing, Scope, ScreenedTurns, Totals
from steelyard.scores import CAUSES, Direction, Evaluation
from steelyard.stats import FEW, Alike, Sample, alike_by, sample_difference, sample_of

_WORST = 6
_GROUPS = 12
_FALSE_CHANGES = 0.02
_BARS = 20
_UNSCORED = "No score has a value: every one failed or was not applicable; the reasons are below."
_BRIEF = 12_000
_BRIEF_CAUSES = 200_000
"""Of how many turns about the causes are counted, at the most."""
_SCREENED = 1_000_000
"""Turns that screens saw; beyond so many, figures are those of the judge alone."""
_BRIEFLY_SCREENED = 200_000


def build_figures(
    reader: ResultsReader,
    scope: Scope | None = None,
    *,
    by: str | None = None,
    brief: bool = False,
    labels: LabelStore | None = None,
) -> ReportFigures:
    """Ask a database for everything a report shows.

    Groups are cut by `tag`, `judge`, `framework` or a metadata field such as `version`. With `brief`, a
    metric with more than 12,000 scores goes by so many, spread over the whole time, and usage, worst turns,
    how the scores were made, groups and slices are left out.
    """
    scope = scope or Scope()
    totals = reader.totals(scope, brief=brief)
    scores = reader.scores(scope, turns=totals.turns, most=_BRIEF if brief else None, by=by)
    samples = {metric: _sample(one) for metric, one in scores.items()}
    turns = reader.screened(scope, limit=_BRIEFLY_SCREENED if brief else _SCREENED)
    funnel = reader.funnel(scope)
    missing = tuple(reader.missing(scope))
    axis = _axis(totals, len(scores))
    causes_every = totals.turns // _BRIEF_CAUSES + 1 if brief else 1
    metrics = _metrics(scores, samples, axis, funnel, missing, turns)
    figures = ReportFigures(
        source=reader.name,
        made_at=time.time(),
        width=axis.width,
        totals=totals,
        metrics=metrics,
        missing=missing,
        funnel=funnel,
        by=by,
        groups=_groups(reader, scope, by, scores, samples, turns),
        causes=_causes(reader.causes(scope, every=causes_every)),
        causes_every=causes_every,
        every=max((one.every for one in scores.values()), default=1),
        notes=tuple(_notes(scope, totals, metrics, missing)),
    )
    return figures if brief else _in_full(reader, scope, figures, turns, labels)


def _in_full(
    reader: ResultsReader,
    scope: Scope,
    figures: ReportFigures,
    turns: Mapping[str, ScreenedTurns],
    labels: LabelStore | None,
) -> ReportFigures:
    """With what takes a look at many scores one by one."""
    metrics = figures.metrics
    read = {one.metric: reader.worst(scope, one.metric, limit=4 * _WORST) for one in metrics}
    findings, slices = look_closer(reader, scope, metrics, turns)
    lacking = (f"no turn has a {figures.by}: nothing to compare",)
    return replace(
        figures,
        metrics=tuple(replace(one, shows=_shows(one.metric, read[one.metric])) for one in metrics),
        made=tuple(reader.made(scope)),
        worst=tuple(
            WorstTurns(metric=metric, turns=_of_each_question(turns)[:_WORST])
            for metric, turns in read.items()
        ),
        findings=findings,
        slices=slices,
        people=() if labels is None else human_agreement(reader, labels, scope, metrics),
        notes=figures.notes + (lacking if figures.by and not figures.groups else ()),
    )


def _axis(totals: Totals, metrics: int) -> TimeAxis:
    first, last = totals.first or 0.0, totals.last or 0.0
    width = bucket_width(max(last - first, 1.0))
    # Of all metrics together: who sees twenty of them must not be told of a fall for nothing each time.
    return TimeAxis(first // width * width, width, 1 - _FALSE_CHANGES / max(metrics, 1))


def _causes(found: Mapping[str, tuple[int, str]]) -> tuple[CauseFigure, ...]:
    total = sum(count for count, _ in found.values())
    figures = (
        CauseFigure(
            cause=cause,
            turns=found[cause][0],
            share=found[cause][0] / total,
            mend=MENDS[cause],
            record_id=found[cause][1],
        )
        for cause in CAUSES
        if cause in found
    )
    return tuple(sorted(figures, key=lambda one: -one.turns))


def _sample(scores: MetricScores) -> tuple[Alike, Sample]:
    """The scores of one metric, and what turns are alike by."""
    alike, units = alike_by(scores.units, scores.values, scores.inclusion)
    return alike, sample_of(scores.values, scores.inclusion, units)


def _metrics(
    scores: Mapping[str, MetricScores],
    samples: Mapping[str, tuple[Alike, Sample]],
    axis: TimeAxis,
    funnel: Funnel | None,
    missing: Sequence[Missing],
    turns: Mapping[str, ScreenedTurns],
) -> tuple[MetricFigure, ...]:
    """The figures of each metric, by name; more exact where a screen saw its turns."""
    floor = (funnel and funnel.floor) or 1.0
    figures = (
        _metric(metric, one, *samples[metric], axis, floor / one.every, missing)
        for metric, one in scores.items()
    )
    return tuple(with_screen(one, turns[one.metric], axis) if one.metric in turns else one for one in figures)


def _metric(
    metric: str,
    scores: MetricScores,
    alike: Alike,
    sample: Sample,
    axis: TimeAxis,
    floor: float,
    missing: Sequence[Missing],
) -> MetricFigure:
    # A day on which only suspicious turns were picked says little of the others: the floor tells it so.
    floor = min(sample.least, floor)
    estimate = sample.estimate(floor=floor)
    assert estimate is not None
    passes = replace(sample, values=scores.passed).part(~np.isnan(scores.passed))
    # 1 itself is in the last bar.
    bars = np.minimum((scores.values * _BARS).astype(np.intp), _BARS - 1)
    even = sample.weight**2 / float(sample.weights @ sample.weights)
    course = sample
    if alike == "order":
        units = alike_by(scores.units, scores.values, scores.inclusion, times=scores.times)[1]
        course = sample_of(scores.values, scores.inclusion, units)
    return MetricFigure(
        metric=metric,
        direction=scores.direction,
        threshold=scores.threshold,
        estimate=estimate,
        pass_rate=passes.estimate(floor=floor),
        shares=tuple((np.bincount(bars, sample.weights, _BARS) / sample.weight).tolist()),
        unequal=even < 0.999 * len(sample),
        alike=alike,
        design_effect=max(even / estimate.effective_n, 1.0),
        missing=_missing_share(metric, sample, missing),
        **course_of(course, scores.times, axis, scores.direction, alike=alike, floor=floor),
    )


def _of_each_question(turns: Sequence[Evaluation]) -> tuple[Evaluation, ...]:
    """The first turn of each question: one that is asked often would hide the others."""
    first: dict[str, Evaluation] = {}
    for turn in turns:
        first.setdefault((turn.record and turn.record.question) or turn.record_id, turn)
    return tuple(first.values())


def _shows(metric: str, turns: Sequence[Evaluation]) -> Shown | None:
    found: set[Shown] = {"verdicts" if turn[metric].hard_value is None else "expectation" for turn in turns}
    return "both" if len(found) > 1 else next(iter(found), None)


def _missing_share(metric: str, sample: Sample, missing: Sequence[Missing]) -> float:
    lost = sum(one.weight for one in missing if one.metric == metric and one.might_have_one)
    return lost / (lost + sample.weight)


def _groups(
    reader: ResultsReader,
    scope: Scope,
    by: str | None,
    scores: Mapping[str, MetricScores],
    samples: Mapping[str, tuple[Alike, Sample]],
    turns: Mapping[str, ScreenedTurns],
) -> tuple[GroupFigure, ...]:
    """Each metric's largest groups, each beside the first by name, or beside the turns that are fine."""
    if by is None:
        return ()
    # Of judges the owner of a score is the group; what they scored has no screen.
    inside = None if by == "judge" else reader.groups_of(scope, by)
    figures: list[GroupFigure] = []
    for metric, one in scores.items():
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, owner in enumerate(one.owners):
            if owner is not None:
                for group in (owner,) if inside is None else inside.get(owner, ()):
                    places[group].append(place)
        parts = {group: samples[metric][1].part(np.array(own)) for group, own in places.items()}
        figures += _of_groups(metric, one.direction, parts)
    return tuple(figures) if inside is None else groups_with_screen(figures, turns, inside)


def _of_groups(metric: str, direction: Direction, parts: Mapping[str, Sample]) -> Iterator[GroupFigure]:
    # A group in which only suspicious turns were picked says little of its others.
    floor = min((part.least for part in parts.values()), default=1.0)
    largest = sorted(parts, key=lambda group: -len(parts[group]))[:_GROUPS]
    largest.sort(key=lambda group: (group != "fine", group))
    for group in largest:
        part, first = parts[group], parts[largest[0]]
        estimate = part.estimate(floor=floor)
        assert estimate is not None
        difference = None if part is first else sample_difference(first, part)
        yield GroupFigure(
            metric=metric, direction=direction, group=group, estimate=estimate, difference=difference
        )


def _notes(
    scope: Scope, totals: Totals, metrics: Sequence[MetricFigure], missing: Sequence[Missing]
) -> list[str]:
    notes = []
    if not totals.turns:
        if scope != Scope():
            return ["There are no evaluated turns of this time, metric, tag and evidence."]
        return ["There are no evaluated turns here yet. A Monitor writes each as soon as it is judged."]
    if not metrics:
        notes.append(_UNSCORED if missing else "The judge has scored no turn yet.")
    if totals.turns < FEW:
        rests = counted(totals.turns, "turn")
        notes.append(f"All of this rests on {rests}; with fewer than {FEW} it says little.")
    if any(one.alike == "order" for one in metrics):
        notes.append(
            "No turn says which session it is of, and turns in a row resemble each other: the intervals "
            "allow for that. A session on each turn makes them exact."
        )
    if not totals.with_content:
        notes.append("Questions and answers were not stored, so that turns cannot be opened.")
    if any(one.cause == "missing_reference" for one in missing):
        notes.append("Some metrics need a reference answer, and some turns have none.")
    return notes
