"""Context precision: did what the reference needs rank high among what was retrieved?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.metrics._metric import Metric
from steelyard.metrics._ranking import rank_useful
from steelyard.questions import MetricRun, Part
from steelyard.record import Record


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
