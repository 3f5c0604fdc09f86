"""From a picked turn to an Evaluation."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import ClassVar

from steelyard.engine import evaluate_one
from steelyard.errors import JudgeUnavailable
from steelyard.judge.middleware import Wrapper
from steelyard.online.config._options import MonitorOptions
from steelyard.questions import Reply, Request
from steelyard.record import Record, clean
from steelyard.scores import Evaluation

__all__ = ["Listening", "score", "worth_waiting"]

_MAY_PASS = frozenset({"breaker_open", "rate_limited", "server_error", "timeout", "unreachable"})


async def score(plan: MonitorOptions, record: Record, *, place: float, rate: float) -> Evaluation:
    """Score a turn with the metrics whose own rates pick it, each with its inclusion probability."""
    names = [metric.name for metric in plan.metrics]
    inclusion = plan.selection.metrics_for(place, rate, names)
    metrics = [metric for metric in plan.metrics if metric.name in inclusion]
    # Plan has seen to it that a metric without a judge of its own finds one here.
    judge = plan.judge or next((metric.judge for metric in metrics if metric.judge), None)
    if judge is None:
        record = clean(record)
        return Evaluation(
            record_id=record.id, scores=(), record=record, trace=record.trace, evaluated_at=time.time()
        )
    return await evaluate_one(
        record,
        metrics,
        judge=Listening(judge),
        embedder=plan.embedder,
        fuse=plan.fuse,
        deadline=time.monotonic() + plan.deadline,
        inclusion=inclusion,
    )


class Listening(Wrapper):
    """Remembers how long servers have asked to be left alone, for the turn that is being scored."""

    longest: ClassVar[ContextVar[list[float]]] = ContextVar("steelyard_retry_after")

    async def answer(self, request: Request) -> Reply:
        """Pass on, and listen."""
        try:
            return await self.judge.answer(request)
        except JudgeUnavailable as error:
            if error.retry_after and (heard := self.longest.get(None)) is not None:
                heard.append(error.retry_after)
            raise


def worth_waiting(evaluation: Evaluation) -> bool:
    """Whether a Score failed for a reason that may pass, such as a judge that is down."""
    return any(score.status == "failed" and score.cause in _MAY_PASS for score in evaluation.scores)
