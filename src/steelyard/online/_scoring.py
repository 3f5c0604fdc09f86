"""From a picked turn to an Evaluation."""

from __future__ import annotations

import time
from dataclasses import dataclass

from steelyard.engine import evaluate_one
from steelyard.errors import JudgeUnavailable
from steelyard.judge.middleware import Wrapper
from steelyard.online.config._options import MonitorOptions
from steelyard.questions import Reply, Request
from steelyard.record import Record, clean
from steelyard.scores import Evaluation

_MAY_PASS = frozenset({"breaker_open", "rate_limited", "server_error", "timeout", "unreachable"})


@dataclass(frozen=True, slots=True)
class Scored:
    """What came of judging a turn."""

    evaluation: Evaluation
    retry_after: float = 0.0
    """The longest time, in seconds, that the judge's server asked to be left alone."""


async def score(options: MonitorOptions, record: Record, *, sampling_position: float, rate: float) -> Scored:
    """Score a turn with the metrics whose own rates pick it, each with its inclusion probability."""
    names = [metric.instance for metric in options.metrics]
    inclusion = options.selection.metrics_for(sampling_position, rate, names)
    metrics = [metric for metric in options.metrics if metric.instance in inclusion]
    # MonitorOptions has seen to it that a metric without a judge of its own finds one here.
    judge = options.judge or next((metric.judge for metric in metrics if metric.judge), None)
    if judge is None:
        record = clean(record)
        return Scored(
            Evaluation(
                record_id=record.id, scores=(), record=record, trace=record.trace, evaluated_at=time.time()
            )
        )
    listening = _RetryAfter(judge)
    evaluation = await evaluate_one(
        record,
        metrics,
        judge=listening,
        embedder=options.embedder,
        fuse=options.fuse,
        deadline=time.monotonic() + options.deadline,
        inclusion=inclusion,
    )
    return Scored(evaluation, listening.longest)


class _RetryAfter(Wrapper):
    """Remembers how long the server has asked to be left alone while one turn was scored."""

    longest = 0.0

    async def answer(self, request: Request) -> Reply:
        """Pass on, and listen."""
        try:
            return await self.judge.answer(request)
        except JudgeUnavailable as error:
            self.longest = max(self.longest, error.retry_after or 0.0)
            raise


def worth_waiting(evaluation: Evaluation) -> bool:
    """Whether a Score failed for a reason that may pass, such as a judge that is down."""
    return any(score.status == "failed" and score.cause in _MAY_PASS for score in evaluation.scores)
