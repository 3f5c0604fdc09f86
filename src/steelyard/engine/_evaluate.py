"""Scoring one Record: metrics are grouped by the judge they use, and each group shares a batcher."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.diagnosis import diagnose
from steelyard.errors import ConfigurationError
from steelyard.metrics import Metric, RecordScores, score_record
from steelyard.questions import Embedder, Fuse, Judge
from steelyard.record import Record, clean
from steelyard.scores import Diagnosis, Evaluation, Score, Usage

_JUDGED = frozenset({"ok", "truncated"})
_AT_ONCE = 10_000
"""Characters of a turn that are read in the loop; more are read beside it."""
_warn = WarnOnce(SafeLogger("steelyard.engine"))


def check_names(metrics: Sequence[Metric]) -> None:
    """Refuse what is not a metric, and metrics whose Scores could not be told apart."""
    seen: set[str] = set()
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise ConfigurationError(
                f"{metric!r} among the metrics is not a Metric; write Faithfulness() with its brackets, "
                "or make metrics out of names with steelyard.metrics.parse_metrics"
            )
        if metric.name in seen:
            raise ConfigurationError(f"two metrics are named {metric.name!r}; give one of them another name=")
        seen.add(metric.name)


async def evaluate_one(
    record: Record,
    metrics: Sequence[Metric],
    *,
    judge: Judge,
    embedder: Embedder | None = None,
    fuse: Fuse = "view",
    deadline: float | None = None,
    inclusion: Mapping[str, float] | float = 1.0,
    score_guesses: bool = False,
    diagnosing: bool = True,
) -> Evaluation:
    """Score one record with any metrics. Whatever goes wrong while judging ends up on the Scores.

    Args:
        record: The turn; it is cleaned first. One that failed or was cancelled is not judged.
        metrics: What to score it with; names must differ.
        judge: Who answers, for metrics that bring no judge of their own.
        embedder: Who embeds.
        fuse: How questions share requests.
        deadline: `time.monotonic()` after which nothing more is asked.
        inclusion: The probability with which this turn was picked, for all metrics or by name.
        score_guesses: Whether passages that were guessed are judged by; else metrics that need passages are
            `not_applicable`.
        diagnosing: Whether to say what the turn suffers from.

    Raises:
        ConfigurationError: If two metrics have the same name.
    """
    check_names(metrics)
    started = time.monotonic()
    record = clean(record)
    is_hidden = record.contexts_source == "guessed" and not score_guesses
    unscored = [metric for metric in metrics if is_hidden and "contexts" in metric.needs]
    if record.status in _JUDGED:
        judged = [metric for metric in metrics if metric not in unscored]
        shown = record.replace(contexts=()) if is_hidden else record
        made = await _score(shown, judged, judge, embedder, fuse, deadline)
    else:
        # Half an answer would be scored low for what the application never got to say.
        made = RecordScores(scores=_unjudged(record, metrics), usage=Usage())
    by_name = {score.metric: score for score in made.scores}
    by_name.update((metric.name, _by_guess(metric)) for metric in unscored if metric.name not in by_name)
    scores = tuple(_picked(by_name[metric.name], _probability(inclusion, metric.name)) for metric in metrics)
    return Evaluation(
        record_id=record.id,
        scores=scores,
        usage=made.usage,
        record=record,
        diagnosis=await _diagnosed(record, scores) if diagnosing and not is_hidden else None,
        trace=record.trace,
        evaluated_at=time.time(),
        duration=time.monotonic() - started,
        retry_after=made.retry_after,
    )


async def _diagnosed(record: Record, scores: Sequence[Score]) -> Diagnosis | None:
    """What the turn suffers from; the scores stand whatever fails here."""
    found = (*record.contexts, *record.retrieved, *(one for stage in record.stages for one in stage.contexts))
    try:
        if sum(map(len, (record.asked, record.answer, *(one.text for one in found)))) <= _AT_ONCE:
            return diagnose(record, scores)
        return await asyncio.to_thread(diagnose, record, scores)
    except Exception as error:  # noqa: BLE001 - verdicts of a judge of one's own may hold anything
        _warn("diagnosis", "a turn was not diagnosed: %s", type(error).__name__)
        return None


def _by_guess(metric: Metric) -> Score:
    return Score.not_applicable(
        metric.name,
        cause="contexts_guessed",
        explanation="the passages were cut out of a prompt, with no source seen; see the record's notes",
    )


def _picked(score: Score, probability: float) -> Score:
    if score.inclusion_probability == probability:
        return score
    return replace(score, inclusion_probability=probability)


async def _score(
    record: Record,
    metrics: Sequence[Metric],
    judge: Judge,
    embedder: Embedder | None,
    fuse: Fuse,
    deadline: float | None,
) -> RecordScores:
    # By identity: judges need not be hashable, and two that are equal may have different clients.
    groups: dict[int, tuple[Judge, list[Metric]]] = {}
    for metric in metrics:
        chosen = metric.judge or judge
        groups.setdefault(id(chosen), (chosen, []))[1].append(metric)
    parts = await asyncio.gather(
        *(
            score_record(record, group, judge=chosen, embedder=embedder, fuse=fuse, deadline=deadline)
            for chosen, group in groups.values()
        )
    )
    waits = [part.retry_after for part in parts if part.retry_after is not None]
    return RecordScores(
        scores=tuple(score for part in parts for score in part.scores),
        usage=sum((part.usage for part in parts), Usage()),
        retry_after=max(waits, default=None),
    )


def _unjudged(record: Record, metrics: Sequence[Metric]) -> tuple[Score, ...]:
    explanation = f"the turn ended with status {record.status!r}{f': {record.error}' if record.error else ''}"
    return tuple(
        Score.not_applicable(metric.name, cause=f"status_{record.status}", explanation=explanation)
        for metric in metrics
    )


def _probability(inclusion: Mapping[str, float] | float, name: str) -> float:
    # A metric that a selection does not name is judged on every turn.
    return inclusion if isinstance(inclusion, float | int) else inclusion.get(name, 1.0)
