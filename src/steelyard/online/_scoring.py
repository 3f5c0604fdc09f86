"""From a picked turn to an Evaluation."""

from __future__ import annotations

import time

from steelyard.engine import evaluate_one
from steelyard.online._plan import Plan
from steelyard.record import Record
from steelyard.scores import Evaluation

__all__ = ["score", "worth_waiting"]

_MAY_PASS = frozenset({"breaker_open", "rate_limited", "server_error", "timeout", "unreachable"})


async def score(plan: Plan, record: Record, *, place: float, rate: float) -> Evaluation:
    """Score a turn with the metrics whose own rates pick it, each with its inclusion probability."""
    names = [metric.instance for metric in plan.metrics]
    inclusion = plan.selection.metrics_for(place, rate, names)
    metrics = [metric for metric in plan.metrics if metric.instance in inclusion]
    # Plan has seen to it that a metric without a judge of its own finds one here.
    judge = plan.judge or next((metric.judge for metric in metrics if metric.judge), None)
    if judge is None:
        return Evaluation(
            record_id=record.id, scores=(), record=record, trace=record.trace, evaluated_at=time.time()
        )
    return await evaluate_one(
        record,
        metrics,
        judge=judge,
        embedder=plan.embedder,
        fuse=plan.fuse,
        deadline=time.monotonic() + plan.deadline,
        inclusion=inclusion,
    )


def worth_waiting(evaluation: Evaluation) -> bool:
    """Whether a Score failed for a reason that may pass, such as a judge that is down."""
    return any(score.status == "failed" and score.cause in _MAY_PASS for score in evaluation.scores)
