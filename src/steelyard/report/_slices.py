"""Which parts of the traffic stand out: tags, frameworks, metadata and clusters of questions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from steelyard._internal.threads import run_anywhere
from steelyard.report.figures import MetricFigure, SliceFigure
from steelyard.report.queries import ResultsReader, SampledScore, Scope
from steelyard.stats import cluster, find_slices, name_clusters

# The latest alone: the time this takes grows with them, and a page waits for it.
_SAMPLE = 3_000
# A field with more values (an id, a time) cuts no slice of any size.
_VALUES = 30
_LEAST = 10  # turns below which a slice is an anecdote
_QUESTIONS = 800  # embedding them must not take longer than the rest of the report
_SHOWN = 12
_FALSE = 0.05  # of what stands out, and of what changed otherwise, together
_ABOUT = "questions about"


def slices_of(
    reader: ResultsReader, scope: Scope, metrics: Sequence[MetricFigure]
) -> tuple[SliceFigure, ...]:
    """The slices that stand out from the rest, and those that changed otherwise than the rest.

    They are looked for among the latest 3,000 scores of each metric; a change is one between the first and
    the second half of the time these span.
    """
    named: dict[str, str] | None = None
    found: list[SliceFigure] = []
    for metric in metrics:
        scores = reader.sample(scope, metric.metric, limit=_SAMPLE)
        if len(scores) < 40 or all(score.value == scores[0].value for score in scores):
            continue
        if named is None:
            named = _clusters([score.question for score in scores])
        found += _of_metric(metric, scores, named)
    return tuple(sorted(_told_once(found), key=lambda one: one.q)[:_SHOWN])


def _told_once(found: Sequence[SliceFigure]) -> list[SliceFigure]:
    """Without the better half of what has two values: it says the same as the worse half."""
    return [one for one in found if not (_better(one) and any(_halves(one, other) for other in found))]


def _better(one: SliceFigure) -> bool:
    return (one.difference.value > 0) == (one.direction == "higher")


def _halves(one: SliceFigure, other: SliceFigure) -> bool:
    """Whether each is the other's rest."""
    return (
        (one.metric, one.attribute, one.of_fall) == (other.metric, other.attribute, other.of_fall)
        and math.isclose(one.share + other.share, 1.0)
        and math.isclose(one.difference.value, -other.difference.value, abs_tol=1e-9)
    )


def _of_metric(
    metric: MetricFigure, scores: Sequence[SampledScore], clusters: dict[str, str]
) -> list[SliceFigure]:
    columns = _columns(scores, clusters)
    middle = (scores[0].happened_at + scores[-1].happened_at) / 2
    after = [score.happened_at >= middle for score in scores]
    values = [score.value for score in scores]
    inclusion = [score.inclusion for score in scores]
    units = [score.unit for score in scores] if any(score.unit for score in scores) else None
    return [
        SliceFigure(
            metric=metric.metric,
            direction=metric.direction,
            attribute=one.name.split("\0")[0],
            value=one.value,
            n=one.n,
            share=one.share,
            difference=one.difference,
            q=one.q,
            of_fall=fall,
        )
        for fall in (False, True)
        for one in find_slices(
            values,
            columns,
            inclusion=inclusion,
            sessions=units,
            after=after if fall else None,
            level=_FALSE / 2,
        )
    ]


def _columns(scores: Sequence[SampledScore], clusters: dict[str, str]) -> dict[str, list[str | None]]:
    """A column for each frequent value of an attribute, as a turn may have several tags."""
    columns: dict[str, list[str | None]] = {}
    for name in sorted(set[str]().union(*(score.attributes for score in scores))):
        given = [score.attributes.get(name, ()) for score in scores]
        counts = Counter(chain.from_iterable(given))
        if name != "tag" and len(counts) > _VALUES:
            continue  # an id or a text: every turn has its own
        columns |= {
            f"{name}\0{value}": [value if value in values else None for values in given]
            for value, count in counts.most_common(_VALUES)
            if count >= _LEAST
        }
    if len(set(clusters.values())) > 1:
        columns[_ABOUT] = [clusters.get(score.question) for score in scores]
    return columns


def _clusters(questions: Sequence[str]) -> dict[str, str]:
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
