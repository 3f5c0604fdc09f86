"""Context precision and utilization: did what was needed, or used, rank high among what was retrieved?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.metrics._formulas import average_precision, chances, expected_precision
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import verdicts
from steelyard.questions import MetricRun, Part, Useful, YesNo, require
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


@dataclass(frozen=True, kw_only=True)
class ContextPrecision(Metric):
    """Average precision over ranks of the contexts that are useful for the reference, in 0..1.

    Source: average precision (Manning, Raghavan & Schütze 2008, section 8.4) as Ragas and DeepEval apply it
    to retrieved contexts. Contexts of which none is useful give 0.
    """

    key = "context_precision"
    needs: ClassVar[tuple[Part, ...]] = ("question", "contexts", "reference")

    def questions(self, record: Record) -> MetricRun:
        return (yield from rank_useful(self, record, "reference"))


@dataclass(frozen=True, kw_only=True)
class ContextUtilization(Metric):
    """Average precision over ranks of the contexts that were useful for the answer, in 0..1.

    The reference-free sibling of context precision (Ragas: `ContextUtilization`). Contexts of which none is
    useful give 0.
    """

    key = "context_utilization"
    needs: ClassVar[tuple[Part, ...]] = ("question", "contexts", "answer")

    def questions(self, record: Record) -> MetricRun:
        return (yield from rank_useful(self, record, "answer"))
