"""One noun per file, each a formula and the questions it asks."""

from steelyard.metrics._metric import (
    Metric,
    RecordScores,
    Threshold,
    held_against,
    metric_provenance,
    score_record,
)
from steelyard.metrics._registry import ALIASES, ALL, by_name, default_metrics, parse_metrics
from steelyard.metrics.answers.answer_accuracy import AnswerAccuracy
from steelyard.metrics.answers.answer_correctness import AnswerCorrectness
from steelyard.metrics.answers.answer_relevancy import AnswerRelevancy
from steelyard.metrics.answers.answer_similarity import AnswerSimilarity, CrossEncoder
from steelyard.metrics.answers.factual_correctness import FactualCorrectness
from steelyard.metrics.answers.faithfulness import Faithfulness
from steelyard.metrics.answers.hallucination import Hallucination
from steelyard.metrics.answers.noise_sensitivity import NoiseSensitivity
from steelyard.metrics.answers.response_groundedness import ResponseGroundedness
from steelyard.metrics.contexts.context_entity_recall import ContextEntityRecall
from steelyard.metrics.contexts.context_precision import ContextPrecision
from steelyard.metrics.contexts.context_recall import ContextRecall
from steelyard.metrics.contexts.context_relevance import ContextRelevance
from steelyard.metrics.contexts.context_relevancy import ContextRelevancy
from steelyard.metrics.contexts.context_utilization import ContextUtilization
from steelyard.metrics.contexts.retrieval import RetrievalPrecision, RetrievalRecall
from steelyard.metrics.custom.aspect_critique import ASPECTS, AspectCritique
from steelyard.metrics.custom.custom_judge import CustomJudge
from steelyard.metrics.custom.rubric import RubricScore
from steelyard.metrics.rag_score import RagScore

__all__ = [
    "ALIASES",
    "ALL",
    "ASPECTS",
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
    "by_name",
    "default_metrics",
    "held_against",
    "metric_provenance",
    "parse_metrics",
    "score_record",
]
