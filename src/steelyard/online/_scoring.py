"""From a picked turn to an Evaluation."""

from __future__ import annotations

import time

from steelyard.engine import evaluate_one
from steelyard.errors import TRANSIENT_CAUSES
from steelyard.online.config._options import MonitorOptions
from steelyard.record import Record, clean
from steelyard.scores import Evaluation


async def score(
    options: MonitorOptions, record: Record, *, sampling_position: float, rate: float
) -> Evaluation:
    """Score a turn with the metrics whose own rates pick it, each with its inclusion probability."""
    names = [metric.name for metric in options.metrics]
    inclusion = options.selection.metrics_for(sampling_position, rate, names)
    metrics = [metric for metric in options.metrics if metric.name in inclusion]
    # MonitorOptions has seen to it that a metric without a judge of its own finds one here.
    judge = options.judge or next((metric.judge for metric in metrics if metric.judge), None)
    if judge is None:
        record = clean(record)
        return Evaluation(
            record_id=record.id, scores=(), record=record, trace=record.trace, evaluated_at=time.time()
        )
    evaluation = await evaluate_one(
        record,
        metrics,
        judge=judge,
        embedder=options.embedder,
        fuse=options.fuse,
        deadline=time.monotonic() + options.deadline,
        inclusion=inclusion,
    )
    return evaluation if options.calibration is None else options.calibration.apply(evaluation)


def worth_waiting(evaluation: Evaluation) -> bool:
    """Whether a Score failed for a reason that may pass, such as a judge that is down."""
    return any(score.status == "failed" and score.cause in TRANSIENT_CAUSES for score in evaluation.scores)
