"""A closer look at the latest scores: what changed where and since when, and what is worse at all times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from steelyard._internal.threads import run_anywhere
from steelyard.report._screens import sample_with_screen
from steelyard.report.figures import FindingFigure, MetricFigure, SliceFigure
from steelyard.report.period import bucket_width
from steelyard.results import ResultsReader
from steelyard.results.queries import SampledScore, Scope, ScreenedTurns
from steelyard.scores import CAUSES, Cause, Direction
from steelyard.stats import (
    Change,
    Difference,
    Incident,
    Sample,
    alike_by,
    cluster,
    find_changes,
    find_deploys,
    find_incidents,
    find_slices,
    name_clusters,
    sample_difference,
    sample_of,
    within_kinds,
)

ABOUT = "questions about"
"""The attribute of clusters of questions."""
# A field with more values (an id, a time) cuts no slice of any size.
_VALUES = 30
_FEWEST = 10  # turns below which a slice is an anecdote
_QUESTIONS = 800  # embedding them must not take longer than the rest of the report

Columns = dict[tuple[str, str], list[str | None]]
"""By attribute and value, for each turn the value if it has it."""


def columns_of(scores: Sequence[SampledScore], clusters: dict[str, str]) -> Columns:
    """A column for each frequent value of an attribute, as a turn may have several tags."""
    columns: Columns = {}
    for name in sorted(set[str]().union(*(score.attributes for score in scores))):
        columns |= _of_attribute(name, [score.attributes.get(name, ()) for score in scores])
    topics = sorted(set(clusters.values()))
    if len(topics) > 1:
        about = [clusters.get(score.question) for score in scores]
        columns |= {(ABOUT, value): [value if one == value else None for one in about] for value in topics}
    return columns


def _of_attribute(name: str, given: Sequence[Sequence[str]]) -> Columns:
    counts = Counter(chain.from_iterable(given))
    if name != "tag" and len(counts) > _VALUES:
        return {}  # an id or a text: every turn has its own
    return {
        (name, value): [value if value in values else None for values in given]
        for value, count in counts.most_common(_VALUES)
        if count >= _FEWEST
    }


def clusters_of(questions: Sequence[str]) -> dict[str, str]:
    """The name of each question's cluster, over the most frequent questions."""
    counts = Counter(question for question in questions if question.strip())
    chosen = sorted(counts, key=lambda question: (-counts[question], question))[:_QUESTIONS]
    if len(chosen) < 8:
        return {}
    from steelyard.judge import StaticEmbedder

    vectors, _ = run_anywhere(StaticEmbedder().embed(chosen))
    labels = cluster(vectors).tolist()
    names = name_clusters(chosen, labels)
    return {
        question: names[label] or f"cluster {label + 1}"
        for question, label in zip(chosen, labels, strict=True)
    }


_LOOK = 12_000
"""Scores of each metric that are looked at: one look takes a second."""
_SCREENED = 200_000
_LEAST = 40
_SHOWN = 5
# Of all metrics together; the changes of whole metrics are allowed the rest of one in twenty.
_FALSE_INCIDENTS, _FALSE_CHANGES, _FALSE_SLICES = 0.02, 0.02, 0.01
_OF_RETRIEVAL = ("context_", "retrieval_")
_WORTH = 0.5
"""What a metric of the retrieval is worth beside one of the answer, which alone reaches the user."""
_LANGUAGES = frozenset({"language", "lang", "locale"})
_Mask = npt.NDArray[np.bool_]


def worth_of(metric: str) -> float:
    """How much a metric counts beside others, in 0..1."""
    return _WORTH if metric.startswith(_OF_RETRIEVAL) else 1.0


@dataclass(frozen=True)
class Looked:
    """The scores of one metric, in order of time."""

    metric: str
    direction: Direction
    scores: Sequence[SampledScore]
    columns: Columns
    clusters: Mapping[str, str]
    screened: ScreenedTurns | None = None
    """The same turns as a screen saw them, if one did."""

    @cached_property
    def sample(self) -> Sample:
        """The judge's values, with a screen's help if there is one."""
        if self.screened is None:
            values = [score.value for score in self.scores]
            return sample_of(values, [score.inclusion for score in self.scores], self.units)
        return sample_with_screen(self.screened, self.units)[1]

    @cached_property
    def units(self) -> Sequence[Hashable] | None:
        if self.screened is None:
            values = np.array([score.value for score in self.scores])
            inclusion = np.array([score.inclusion for score in self.scores])
        else:
            alone = sample_with_screen(self.screened)[1]
            values, inclusion = alone.values, 1 / alone.weights
        times = np.array([score.happened_at for score in self.scores])
        return alike_by([score.unit for score in self.scores], values, inclusion, times=times)[1]

    @property
    def named(self) -> dict[str, list[str | None]]:
        return {f"{name}\0{value}": column for (name, value), column in self.columns.items()}

    def part(self, where: _Mask) -> list[SampledScore]:
        return [self.scores[at] for at in np.flatnonzero(where).tolist()]


def look_closer(
    reader: ResultsReader,
    scope: Scope,
    metrics: Sequence[MetricFigure],
    turns: Mapping[str, ScreenedTurns] | None = None,
) -> tuple[tuple[FindingFigure, ...], tuple[SliceFigure, ...]]:
    """What changed, the most harmful first, and the slices that are unlike the rest at all times.

    Of each metric 12,000 scores are looked at, spread over the whole time if there are more. If nothing is
    wrong, anything is told in one of twenty looks at most.
    """
    if turns is None:
        turns = reader.screened(scope, limit=_SCREENED)
    looked = _looked(reader, scope, metrics, turns)
    found = findings_of(looked)
    is_local = any(one.judge.startswith("local") and not one.calibrated for one in reader.made(scope))
    named = {(one.metric, name) for one in found for name in one.names}
    slices = [
        one
        for metric_looked in looked
        for one in _slices(metric_looked, _FALSE_SLICES / len(looked), is_local)
        if (one.metric, (one.attribute, one.value)) not in named
    ]
    return found, tuple(sorted(slices, key=_harm_of_slice)[:_SHOWN])


def _looked(
    reader: ResultsReader, scope: Scope, metrics: Sequence[MetricFigure], turns: Mapping[str, ScreenedTurns]
) -> list[Looked]:
    """The scores of each metric that has enough of them, and that vary."""
    looked: list[Looked] = []
    clusters: dict[str, str] | None = None
    for metric in metrics:
        every = math.ceil(metric.estimate.n / _LOOK)
        scores = reader.sample(scope, metric.metric, limit=_LOOK, every=every)
        if len(scores) < _LEAST or all(score.value == scores[0].value for score in scores):
            continue
        screened = None
        if metric.screen is not None and metric.metric in turns:
            scores, screened = _with_unjudged(
                reader, scope, metric.metric, scores, turns[metric.metric], every
            )
        if clusters is None:
            clusters = clusters_of([score.question for score in scores])
        columns = columns_of(scores, clusters)
        looked.append(Looked(metric.metric, metric.direction, scores, columns, clusters, screened))
    return looked


def _with_unjudged(
    reader: ResultsReader,
    scope: Scope,
    metric: str,
    scores: Sequence[SampledScore],
    turns: ScreenedTurns,
    judged_every: int,
) -> tuple[list[SampledScore], ScreenedTurns]:
    """The scores with turns that only a screen saw, in order of time, and what is known of all of them."""
    every = math.ceil(len(turns.records) / _LOOK)
    others = reader.unjudged(scope, metric, limit=_LOOK, every=every)
    place = {record: index for index, record in enumerate(turns.records)}
    found = {one.record_id: one for one in [*others, *scores] if one.record_id in place}
    ordered = sorted(found.values(), key=lambda one: place[one.record_id])
    places = [place[one.record_id] for one in ordered]
    return ordered, turns.part(places, judged_every=judged_every, every=every)


def findings_of(looked: Sequence[Looked]) -> tuple[FindingFigure, ...]:
    """What changed in any of some metrics, the most harmful first."""
    found = [finding for one in looked for finding in _of_metric(one, len(looked))]
    ordered = sorted(found, key=lambda one: -one.harm)[:_SHOWN]
    return tuple(replace(one, beside=_beside(one, ordered[:at])) for at, one in enumerate(ordered))


def _beside(finding: FindingFigure, earlier: Sequence[FindingFigure]) -> str:
    """The metric under which the same event is told already; empty if it is another one."""

    def event(one: FindingFigure) -> tuple[object, ...]:
        return one.worse, set(one.names), one.cause and one.cause[0], one.deploys, one.by_mix

    same = (
        one.metric
        for one in earlier
        if event(one) == event(finding) and one.earliest <= finding.latest and finding.earliest <= one.latest
    )
    return next(same, "")


def _of_metric(looked: Looked, metrics: int) -> list[FindingFigure]:
    times = np.array([score.happened_at for score in looked.scores])
    sample = looked.sample
    width = bucket_width(max(float(times[-1] - times[0]), 1.0))
    incidents = find_incidents(sample, times, looked.named, width=width, level=_FALSE_INCIDENTS / metrics)
    left = ~np.any([one.inside for one in incidents], axis=0) if incidents else np.ones(len(times), bool)
    # One that stayed as it was while all others changed is not what happened.
    found = [
        _incident(looked, sample, times, one)
        for one in incidents
        if one.difference.clear and one.difference.value * one.against > 0
    ]
    level, known = 1 - _FALSE_CHANGES / metrics, any(score.unit is not None for score in looked.scores)
    steps = find_changes(sample.part(left), times[left], width=width, level=level, sessions_known=known)
    found += [_finding(looked, sample, times, step, left, ()) for step in steps if step.difference.clear]
    return _news(found, width)


def _news(found: Sequence[FindingFigure], width: float) -> list[FindingFigure]:
    """The falls, and beside them what clearly rose at another time.

    What rises while the rest falls has the same cause, or rises by comparison alone.
    """
    falls = [one for one in found if one.harm > 0]
    return [
        one
        for one in found
        if one.harm > 0
        or all(
            one.difference.clear
            and (one.earliest > fall.latest + width or fall.earliest > one.latest + width)
            for fall in falls
        )
    ]


def _incident(looked: Looked, sample: Sample, times: npt.NDArray[np.float64], one: Incident) -> FindingFigure:
    names = tuple((name.split("\0")[0], value) for name, value in one.names)
    change = Change(since=one.since, until=None, difference=one.difference)
    found = _finding(looked, sample, times, change, one.inside, names)
    return replace(found, earliest=one.earliest, latest=one.latest)


def _finding(
    looked: Looked,
    sample: Sample,
    times: npt.NDArray[np.float64],
    change: Change,
    inside: _Mask,
    names: tuple[tuple[str, str], ...],
) -> FindingFigure:
    """What changed in some turns, with all that can be said of why."""
    later = inside & (times >= change.since)
    earlier = inside & ~later
    weight = float(sample.weights[later].sum())
    # By how much it got worse.
    fall = change.difference.value * (1.0 if looked.direction == "lower" else -1.0)
    versions = _versions(looked, {name for name, _ in names}, inside)
    before, after = looked.part(earlier), looked.part(later)
    kinds = ([_kind(looked, one) for one in before], [_kind(looked, one) for one in after])
    drifts = change.until is not None
    # A drift began with no deploy, and half of its size is what it cost on average.
    deploys = (
        []
        if drifts
        else find_deploys(sample.part(inside), times[inside], versions, grown=change.difference.value > 0)
    )
    return FindingFigure(
        metric=looked.metric,
        direction=looked.direction,
        names=names,
        since=change.since,
        earliest=change.since,
        latest=change.since if change.until is None else change.until,
        difference=change.difference,
        share=float(sample.weights[inside].sum()) / sample.weight,
        turns=weight,
        harm=weight * worth_of(looked.metric) * fall / (1 + drifts),
        within=within_kinds(sample.part(earlier), sample.part(later), kinds) if looked.clusters else None,
        cause=_cause(before, after) if fall > 0 else None,
        deploys=tuple(deploys),
        versioned=bool(versions),
        worst=_worst(after, looked.direction),
        until=change.until,
    )


def _worst(scores: Sequence[SampledScore], direction: Direction) -> tuple[str, ...]:
    sign = 1.0 if direction == "higher" else -1.0
    judged = [one for one in scores if one.judged]
    ordered = sorted(judged, key=lambda one: (sign * one.value, -one.happened_at, one.record_id))
    return tuple(one.record_id for one in ordered[:3])


def _kind(looked: Looked, score: SampledScore) -> str:
    return looked.clusters.get(score.question, "")


def _versions(looked: Looked, of_slice: set[str], inside: _Mask) -> dict[str, list[str | None]]:
    """Fields with one value a turn; `find_deploys` takes those whose values follow each other."""
    names = {name for name, _ in looked.columns} - of_slice - {"tag", "tenant", "framework", ABOUT}
    scores = looked.part(inside)
    return {
        name: [next(iter(score.attributes.get(name, ())), None) for score in scores] for name in sorted(names)
    }


def _cause(
    before: Sequence[SampledScore], after: Sequence[SampledScore]
) -> tuple[Cause, float, float] | None:
    """What clearly more turns suffer from since then; of several, what has grown most."""
    first, second = ([one for one in part if one.diagnosis is not None] for part in (before, after))
    if not first or not second:
        return None
    seen = {one.diagnosis for one in second}
    moves = [(moved, cause) for cause in CAUSES if cause in seen and (moved := _moved(cause, first, second))]
    if not moves:
        return None
    moved, cause = max(moves, key=lambda pair: pair[0].value)
    return cause, moved.first, moved.second


def _moved(cause: Cause, before: Sequence[SampledScore], after: Sequence[SampledScore]) -> Difference | None:
    """How the share of turns with a cause grew; None if that is not clear."""
    scores = [*before, *after]
    both = sample_of(
        (float(one.diagnosis == cause) for one in scores),
        (one.inclusion for one in scores),
        [one.unit for one in scores],
    )
    is_first = np.arange(len(scores)) < len(before)
    moved = sample_difference(both.part(is_first), both.part(~is_first), level=1 - 0.05 / len(CAUSES))
    return moved if moved is not None and moved.low > 0 else None


def _slices(looked: Looked, level: float, is_local: bool) -> list[SliceFigure]:
    return [
        SliceFigure(
            metric=looked.metric,
            direction=looked.direction,
            attribute=(name := one.name.split("\0")[0]),
            value=one.value,
            n=one.n,
            share=one.share,
            difference=one.difference,
            q=one.q,
            judge=is_local and name in _LANGUAGES and not one.value.casefold().startswith("en"),
        )
        for one in find_slices(
            looked.sample,
            looked.named,
            than_rest="lower" if looked.direction == "higher" else "higher",
            level=level,
        )
    ]


def _harm_of_slice(one: SliceFigure) -> float:
    """What the turns that are worse cost; what the judge may be to blame for comes last."""
    return float(one.judge) - one.share * worth_of(one.metric) * abs(one.difference.value)
