"""The metrics room: one noun per file, each a formula and the questions it asks."""

from steelyard.metrics._metric import Metric, score_record
from steelyard.metrics._registry import ALL, by_name, default_metrics, metrics_named
from steelyard.metrics.answer_relevancy import AnswerRelevancy
from steelyard.metrics.context_precision import ContextPrecision
from steelyard.metrics.context_recall import ContextRecall
from steelyard.metrics.context_relevance import ContextRelevance
from steelyard.metrics.context_relevancy import ContextRelevancy
from steelyard.metrics.context_utilization import ContextUtilization
from steelyard.metrics.faithfulness import Faithfulness
from steelyard.metrics.response_groundedness import ResponseGroundedness

__all__ = [
    "ALL",
    "AnswerRelevancy",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextRelevancy",
    "ContextUtilization",
    "Faithfulness",
    "Metric",
    "ResponseGroundedness",
    "by_name",
    "default_metrics",
    "metrics_named",
    "score_record",
]
