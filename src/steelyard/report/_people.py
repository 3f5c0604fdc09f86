"""What people said beside what the judge said: the mean corrected by their labels, and how far they agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import nlargest

from steelyard._internal.text import counted
from steelyard.calibration import Answers, Judged, Material, assess, collect
from steelyard.errors import InvalidRecord
from steelyard.report.figures import MetricFigure, PeopleFigure
from steelyard.results import ResultsReader
from steelyard.results.labels import Label, LabelStore
from steelyard.results.queries import SampledScore, Scope
from steelyard.scores import Evaluation
from steelyard.stats import Estimate

# The latest scores alone: correcting takes time that grows with them, and a page waits for it.
_SAMPLE = 10_000
_LABELLED = 2_000


def human_agreement(
    reader: ResultsReader, labels: LabelStore, scope: Scope, metrics: Sequence[MetricFigure]
) -> tuple[PeopleFigure, ...]:
    """What labels say of each metric, over its latest 10,000 scores and the latest 2,000 labelled turns."""
    turns, said = labelled_turns(reader, labels)
    if not turns:
        return ()
    figures = (_of_metric(reader, scope, metric, turns, said) for metric in metrics)
    return tuple(figure for figure in figures if figure is not None)


def labelled_turns(reader: ResultsReader, labels: Iterable[Label]) -> tuple[list[Evaluation], list[Label]]:
    """The latest 2,000 labelled turns that can be read, and all that is said of them."""
    by_record: defaultdict[str, list[Label]] = defaultdict(list)
    for label in labels:
        by_record[label.record_id].append(label)
    latest = nlargest(_LABELLED, by_record, key=lambda record: by_record[record][-1].labelled_at)
    turns = [found for record in latest if (found := _evaluation(reader, record)) is not None]
    return turns, [label for record in latest for label in by_record[record]]


def _evaluation(reader: ResultsReader, record: str) -> Evaluation | None:
    try:
        return reader.evaluation(record)
    except InvalidRecord:
        return None


def _of_metric(
    reader: ResultsReader,
    scope: Scope,
    metric: MetricFigure,
    turns: Sequence[Evaluation],
    labels: Sequence[Label],
) -> PeopleFigure | None:
    sample = reader.sample(scope, metric.metric, limit=_SAMPLE)
    if not sample:
        return None
    first, last = sample[0].happened_at, sample[-1].happened_at
    within = [
        turn
        for turn in turns
        if first <= turn.at <= last
        and (scope.tag is None or (turn.record is not None and scope.tag in turn.record.tags))
    ]
    materials = [one for one in collect(within, labels) if one.key.metric == metric.metric and one.labelled]
    if not materials:
        return None
    found = assess(_joined(materials, [_judged(score, metric) for score in sample]))
    return PeopleFigure(
        metric=metric.metric,
        labelled=found.agreement.n,
        contradictory=len(found.agreement.contradictory),
        scored=len(sample),
        raw=found.raw_mean,
        corrected=found.corrected_mean,
        picked=found.agreement.picked,
        kappa=found.agreement.kappa,
        area=found.agreement.area,
        people=found.agreement.people,
        to_halve=found.to_halve,
    )


def _joined(materials: Sequence[Material], judged: Sequence[Judged]) -> Material:
    """The labels of all judges together, beside all scores, as the report shows their mean together."""
    return Material(
        key=materials[0].key,
        judged=judged,
        # By the score alone: what else a verdict tells is not known of the scores without a label.
        labelled=[
            one._replace(judged=replace(one.judged, worst=None))
            for material in materials
            for one in material.labelled
        ],
        answers=Answers(
            pairs=[pair for material in materials for pair in material.answers.pairs],
            contradictory=[name for material in materials for name in material.answers.contradictory],
        ),
        of_turns=sum(material.of_turns for material in materials),
    )


def _judged(score: SampledScore, metric: MetricFigure) -> Judged:
    value = score.value if metric.direction == "higher" else 1 - score.value
    return Judged(record_id="", value=value, worst=None, inclusion=score.inclusion, claims=0, unit=score.unit)


def describe_agreement(found: PeopleFigure) -> str:
    """What people's labels say of a metric, in a sentence."""
    drawn = found.labelled - found.picked
    if found.corrected is None:
        parts = [
            f"{found.labelled:,} labelled turns, {drawn:,} of them drawn by steelyard label: from 10 drawn "
            "ones on, the mean is corrected by them"
        ]
    else:
        parts = [
            f"people would call {_range(found.corrected)} good, where the judge's mean is "
            f"{'-' if found.raw is None else f'{found.raw.value:.2f}'}"
        ]
        parts.append(f"from {drawn:,} labelled turns, drawn from {found.scored:,} scored ones")
        if found.picked:
            parts.append(f"{found.picked:,} more were picked by people and count below alone")
    if found.kappa is not None:
        parts.append(f"kappa {_range(found.kappa)}")
    if found.area is not None:
        parts.append(f"AUROC {_range(found.area)}")
    if found.people is not None:
        parts.append(f"kappa among people {_range(found.people)}")
    if found.contradictory:
        parts.append(f"{counted(found.contradictory, 'turn')} left out because people differ")
    return "; ".join(parts)


def _range(found: Estimate) -> str:
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
