"""All metrics by name, and the suites that a judge can honestly answer."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.errors import ConfigurationError
from steelyard.judge import Claims, Judge, Questions
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import ClaimsFrom
from steelyard.metrics.answer_relevancy import AnswerRelevancy
from steelyard.metrics.context_precision import ContextPrecision
from steelyard.metrics.context_recall import ContextRecall
from steelyard.metrics.context_relevance import ContextRelevance
from steelyard.metrics.context_relevancy import ContextRelevancy
from steelyard.metrics.context_utilization import ContextUtilization
from steelyard.metrics.faithfulness import Faithfulness
from steelyard.metrics.response_groundedness import ResponseGroundedness

__all__ = ["ALL", "by_name", "default_metrics", "metrics_named"]

ALL: tuple[type[Metric], ...] = (
    Faithfulness,
    AnswerRelevancy,
    ContextPrecision,
    ContextUtilization,
    ContextRecall,
    ContextRelevancy,
    ContextRelevance,
    ResponseGroundedness,
)
"""Every metric that works without arguments, in the order of docs/metrics.md."""


def by_name(name: str) -> type[Metric]:
    """The metric with this key, whatever the case and with `-` for `_`.

    Raises:
        ConfigurationError: If there is none; the message lists those there are.
    """
    wanted = name.strip().lower().replace("-", "_")
    for metric in ALL:
        if wanted in (metric.key, metric.__name__.lower()):
            return metric
    known = ", ".join(metric.key for metric in ALL)
    raise ConfigurationError(f"no metric is named {name!r}; there are: {known}")


def default_metrics(judge: Judge) -> list[Metric]:
    """The suite for live traffic, which has no reference, in the readings that this judge can answer.

    A judge that cannot write questions (the local one) gets answer relevancy in its statements reading, and
    one whose claims would be sentences anyway is asked for sentences.
    """
    writes = Questions in judge.capabilities.kinds
    extracts = Claims in judge.capabilities.kinds and writes
    claims: ClaimsFrom = "extracted" if extracts else "sentences"
    relevancy = AnswerRelevancy() if writes else AnswerRelevancy(reading="statements", claims=claims)
    return [Faithfulness(claims=claims), relevancy, ContextUtilization(), ContextRelevancy()]


def metrics_named(names: Sequence[str], judge: Judge) -> list[Metric]:
    """Metrics by name, in the readings of `default_metrics` where that has them.

    Raises:
        ConfigurationError: If a name is unknown.
    """
    preset = {metric.key: metric for metric in default_metrics(judge)}
    chosen = [by_name(name) for name in names]
    return [preset[metric.key] if metric.key in preset else metric() for metric in chosen]
