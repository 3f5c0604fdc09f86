"""Precision over ranks: what context precision and context utilization share."""

from __future__ import annotations

from typing import Literal

from steelyard.metrics._expected import chances, expected_precision
from steelyard.metrics._formulas import average_precision
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import verdicts
from steelyard.questions import MetricRun, Useful, YesNo, require
from steelyard.record import Record


def rank_useful(metric: Metric, record: Record, toward: Literal["answer", "reference"]) -> MetricRun:
    """Ask of every context whether it was useful, and score the ranking; use with `yield from`."""
    contexts = record.contexts
    asked = [Useful(context=index, toward=toward) for index in range(len(contexts))]
    answers = require((yield asked), YesNo)
    useful = [answer.value for answer in answers]
    first = next((rank for rank, hit in enumerate(useful, start=1) if hit), None)
    where = f", the first at rank {first}" if first else ""
    return metric.scored(
        average_precision(useful),
        expected=expected_precision(chances(answers)),
        verdicts=verdicts("useful", [context.text for context in contexts], answers),
        explanation=f"{sum(useful)} of {len(useful)} contexts useful for the {toward}{where}",
    )
