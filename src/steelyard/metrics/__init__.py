"""One noun per file, each a formula and the questions it asks."""

from steelyard.metrics._metric import (
    Metric,
    RecordScores,
    Threshold,
    held_against,
    metric_provenance,
    score_record,
)
from steelyard.metrics._registry import ALIASES, ALL, default_metrics, get_metric, parse_metrics
from steelyard.metrics.answers.answer_correctness import AnswerCorrectness
from steelyard.metrics.answers.answer_relevancy import AnswerRelevancy
from steelyard.metrics.answers.answer_similarity import AnswerSimilarity, CrossEncoder
from steelyard.metrics.answers.factual_correctness import FactualCorrectness
from steelyard.metrics.answers.faithfulness import Faithfulness
from steelyard.metrics.answers.hallucination import Hallucination
from steelyard.metrics.answers.noise_sensitivity import NoiseSensitivity
from steelyard.metrics.contexts.context_entity_recall import ContextEntityRecall
from steelyard.metrics.contexts.context_precision import ContextPrecision, ContextUtilization
from steelyard.metrics.contexts.context_recall import ContextRecall
from steelyard.metrics.contexts.context_relevancy import ContextRelevancy
from steelyard.metrics.contexts.context_sufficiency import ContextSufficiency
from steelyard.metrics.contexts.retrieval import RetrievalPrecision, RetrievalRecall
from steelyard.metrics.custom import AspectCritique, CustomJudge, RubricScore
from steelyard.metrics.rag_score import RagScore
from steelyard.metrics.ratings import AnswerAccuracy, ContextRelevance, ResponseGroundedness

__all__ = [
    "ALIASES",
    "ALL",
    "AnswerAccuracy",
    "AnswerCorrectness",
    "AnswerRelevancy",
    "AnswerSimilarity",
    "AspectCritique",
    "ContextEntityRecall",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextRelevancy",
    "ContextSufficiency",
    "ContextUtilization",
    "CrossEncoder",
    "CustomJudge",
    "FactualCorrectness",
    "Faithfulness",
    "Hallucination",
    "Metric",
    "NoiseSensitivity",
    "RagScore",
    "RecordScores",
    "ResponseGroundedness",
    "RetrievalPrecision",
    "RetrievalRecall",
    "RubricScore",
    "Threshold",
    "get_metric",
    "default_metrics",
    "held_against",
    "metric_provenance",
    "parse_metrics",
    "score_record",
]
