"""What the page says of a made-up month, without a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from months.traffic import METRICS, Month
from steelyard.report import look_closer
from steelyard.report.figures import FindingFigure, MetricFigure
from steelyard.results import ResultsReader
from steelyard.results.queries import SampledScore, Scope
from steelyard.stats import weighted_mean


class Stored:
    """As much of a `ResultsReader` as a closer look asks."""

    def __init__(self, month: Month) -> None:
        self.month = month

    def sample(self, _scope: Scope, metric: str, *, limit: int, every: int = 1) -> list[SampledScore]:
        month = self.month
        names = [name for name in month.columns if name != "topic"]
        return [
            SampledScore(
                value=float(month.values[metric][at]),
                inclusion=float(month.inclusion[at]),
                happened_at=float(month.times[at]),
                question=f"{month.columns['topic'][at]}?",
                attributes={name: [str(month.columns[name][at])] for name in (*names, "topic")},
                unit=f"s{month.sessions[at]}",
                record_id=f"r{at}",
            )
            for at in range(0, len(month.times), every)
        ][-limit:]

    def made(self, _scope: Scope) -> list[Any]:
        return []

    def screened(self, _scope: Scope, *, limit: int) -> dict[str, Any]:
        return {}


def findings(month: Month) -> Sequence[FindingFigure]:
    """What changed, the most harmful first."""
    metrics = []
    for name in METRICS:
        estimate = weighted_mean(month.values[name], month.inclusion)
        assert estimate is not None
        metrics.append(
            MetricFigure(
                metric=name,
                direction="higher",
                threshold=None,
                estimate=estimate,
                pass_rate=None,
                points=(),
                smooth=(),
                changes=(),
                shares=(),
                stands_for=0.0,
                unequal=False,
            )
        )
    return look_closer(cast(ResultsReader, Stored(month)), Scope(), metrics)[0]


def told(month: Month, found: Sequence[FindingFigure]) -> bool:
    """Whether the first line is the incident of a month."""
    happened = month.incident
    if not found or happened is None:
        return False
    first = found[0]
    return first.metric == happened.metric and (happened.attribute, happened.value) in first.names
