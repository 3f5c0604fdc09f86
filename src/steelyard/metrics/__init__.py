"""The metrics room: one noun per file, each a formula and the questions it asks."""

from steelyard.metrics._metric import Metric, RecordScores, made_by, score_record
from steelyard.metrics._registry import ALIASES, ALL, by_name, default_metrics, metrics_named
from steelyard.metrics.answer_accuracy import AnswerAccuracy
from steelyard.metrics.answer_correctness import AnswerCorrectness
from steelyard.metrics.answer_relevancy import AnswerRelevancy
from steelyard.metrics.answer_similarity import AnswerSimilarity, CrossEncoder
from steelyard.metrics.aspect_critique import ASPECTS, AspectCritique
from steelyard.metrics.context_entity_recall import ContextEntityRecall
from steelyard.metrics.context_precision import ContextPrecision
from steelyard.metrics.context_recall import ContextRecall
from steelyard.metrics.context_relevance import ContextRelevance
from steelyard.metrics.context_relevancy import ContextRelevancy
from steelyard.metrics.context_utilization import ContextUtilization
from steelyard.metrics.custom_judge import CustomJudge
from steelyard.metrics.factual_correctness import FactualCorrectness
from steelyard.metrics.faithfulness import Faithfulness
from steelyard.metrics.hallucination import Hallucination
from steelyard.metrics.noise_sensitivity import NoiseSensitivity
from steelyard.metrics.rag_score import RagScore
from steelyard.metrics.response_groundedness import ResponseGroundedness
from steelyard.metrics.retrieval import RetrievalPrecision, RetrievalRecall
from steelyard.metrics.rubric import RubricScore

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
    "by_name",
    "default_metrics",
    "made_by",
    "metrics_named",
    "score_record",
]
