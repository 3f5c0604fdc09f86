"""Context utilization: did what was used for the answer rank high among what was retrieved?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.metrics._metric import Metric
from steelyard.metrics._ranking import rank_useful
from steelyard.questions import MetricRun, Part
from steelyard.record import Record


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
