"""From Scores to what a run keeps of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from steelyard._internal.text import shorten
from steelyard.golden._results import MetricResult
from steelyard.scores import Evaluation, Score, Verdict

_MOST_VERDICTS = 8
_LONGEST = 240


def measured(evaluation: Evaluation, thresholds: Mapping[str, float]) -> dict[str, MetricResult]:
    """The Scores of an Evaluation by metric."""
    return {score.metric: _result(score, thresholds.get(score.metric)) for score in evaluation.scores}


def merged(before: Mapping[str, MetricResult], found: Mapping[str, MetricResult]) -> dict[str, MetricResult]:
    """The same results with the values of a repeat; one without a value adds nothing."""
    return {
        name: replace(result, values=(*result.values, *found[name].values)) if name in found else result
        for name, result in before.items()
    }


def _result(score: Score, threshold: float | None) -> MetricResult:
    against = [_line(verdict) for verdict in score.verdicts if verdict.good is False]
    return MetricResult(
        values=() if score.value is None else (score.value,),
        status=score.status,
        cause=score.cause,
        explanation=score.explanation,
        against=tuple(against[:_MOST_VERDICTS]),
        threshold=threshold,
        direction=score.direction,
    )


def _line(verdict: Verdict) -> str:
    """What was judged, what was said of it, and the passage it was checked against."""
    said = f"{verdict.kind.replace('_', ' ')}: {'yes' if verdict.value else 'no'}"
    parts = [f"{shorten(verdict.about, _LONGEST)!r} ({said})"]
    if verdict.reason:
        parts.append(shorten(verdict.reason, _LONGEST))
    piece = next((evidence for evidence in verdict.evidence if evidence.text), None)
    if piece is not None:
        where = "" if piece.context is None else f" in context {piece.context + 1}"
        parts.append(f"nearest{where}: {shorten(piece.text, _LONGEST)!r}")
    return "; ".join(parts)
