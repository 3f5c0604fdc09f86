"""Metrics: formulas and the questions they ask, of answers and of contexts; and all of them by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import instead_of
from steelyard.errors import ConfigurationError

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.metrics._metric import Metric, Threshold
from steelyard.metrics._metric import RecordScores as RecordScores
from steelyard.metrics._metric import held_against as held_against
from steelyard.metrics._metric import metric_provenance as metric_provenance
from steelyard.metrics._metric import score_record as score_record
from steelyard.metrics._steps import ClaimsFrom
from steelyard.metrics.answer_correctness import (
    AnswerCorrectness,
    AnswerSimilarity,
    CrossEncoder,
    FactualCorrectness,
)
from steelyard.metrics.answers import AnswerRelevancy, Faithfulness, Hallucination, NoiseSensitivity
from steelyard.metrics.contexts import (
    ContextEntityRecall,
    ContextPrecision,
    ContextRecall,
    ContextRelevancy,
    ContextSufficiency,
    ContextUtilization,
    RetrievalPrecision,
    RetrievalRecall,
)
from steelyard.metrics.custom import ASPECTS, AspectCritique, CustomJudge, RubricScore
from steelyard.metrics.rag_score import RagScore
from steelyard.metrics.ratings import AnswerAccuracy, ContextRelevance, ResponseGroundedness
from steelyard.questions import GeneratedQuestions, Judge

__all__ = [
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
    "ResponseGroundedness",
    "RetrievalPrecision",
    "RetrievalRecall",
    "RubricScore",
    "Threshold",
    "default_metrics",
    "parse_metrics",
]

ALL: tuple[type[Metric], ...] = (
    Faithfulness,
    Hallucination,
    AnswerRelevancy,
    ContextPrecision,
    ContextUtilization,
    ContextRecall,
    ContextEntityRecall,
    ContextRelevancy,
    ContextRelevance,
    ContextSufficiency,
    ResponseGroundedness,
    AnswerAccuracy,
    AnswerSimilarity,
    AnswerCorrectness,
    FactualCorrectness,
    NoiseSensitivity,
    RubricScore,
    RetrievalPrecision,
    RetrievalRecall,
    RagScore,
)
"""Every metric that works without arguments, in the order of docs/reference/metrics.md; aspects by name."""


ALIASES: dict[str, Callable[[], Metric]] = {
    "answer_relevance": AnswerRelevancy,
    "response_relevancy": AnswerRelevancy,
    "context_entities_recall": ContextEntityRecall,
    "answer_semantic_similarity": AnswerSimilarity,
    "semantic_similarity": AnswerSimilarity,
    "contextual_precision": ContextPrecision,
    "contextual_recall": partial(ContextRecall, claims="sentences"),
    "contextual_relevancy": partial(ContextRelevancy, variant="statements"),
    "ragas_score": RagScore,
    "rubrics_score": RubricScore,
    "aspect_critic": AspectCritique,
    "sufficient_context": ContextSufficiency,
    "nv_context_relevance": ContextRelevance,
    "nv_response_groundedness": ResponseGroundedness,
    "nv_accuracy": AnswerAccuracy,
}
"""Names that other libraries and papers use, and what they mean there; their Scores carry our names."""


_TRAP = (
    "context_relevance is NVIDIA's rating of all contexts together; the context relevance of the RAGAS paper "
    "(needed sentences / sentences) is context_relevancy. Write nv_context_relevance to mean the rating."
)
_warn = WarnOnce(SafeLogger("steelyard.metrics"))


def get_metric(name: str) -> Callable[[], Metric]:
    """The metric, or the aspect, with this name or alias, whatever the case and with `-` for `_`."""
    wanted = name.strip().lower().replace("-", "_")
    # Two libraries mean different things by this name, so the choice made is said.
    if wanted in ("context_relevance", "contextrelevance"):
        _warn("context_relevance", _TRAP)
    for metric in ALL:
        if wanted in (metric.key, metric.__name__.lower()):
            return metric
    if wanted in ASPECTS:
        return partial(AspectCritique, aspect=wanted)
    if wanted in ALIASES:
        return ALIASES[wanted]
    known = [*(metric.key for metric in ALL), *ASPECTS, *ALIASES]
    raise ConfigurationError(f"no metric is named {name!r}; {instead_of(wanted, known)}")


def default_metrics(judge: Judge) -> list[Metric]:
    """The suite for live traffic, which has no reference, in the variants that this judge can answer.

    A judge that cannot write (the local one) gets answer relevancy in its statements variant, and claims are
    the sentences that state something: its own extraction is no more than that, and the Score says so.
    """
    writes = GeneratedQuestions in judge.capabilities.kinds
    claims: ClaimsFrom = "extracted" if writes else "sentences"
    relevancy = AnswerRelevancy() if writes else AnswerRelevancy(variant="statements", claims=claims)
    return [Faithfulness(claims=claims), relevancy, ContextUtilization(), ContextRelevancy()]


def parse_metrics(names: Sequence[str | Metric], judge: Judge) -> list[Metric]:
    """Metrics by name, in the variants of `default_metrics` if it has them; `all` means every one.

    What is a Metric already stays as it is.

    Raises:
        ConfigurationError: If a name is unknown, or this is not a list.
    """
    if isinstance(names, str | Metric):
        raise ConfigurationError(f"metrics must be a list, not a single metric; write metrics=[{names!r}]")
    preset = {metric.key: metric for metric in default_metrics(judge)}
    parts = tuple(preset.get(part.key, part) for part in RagScore().parts)
    preset[RagScore.key] = RagScore(parts=parts)
    found: list[Metric] = []
    for name in names:
        if not isinstance(name, str):
            found.append(name)
            continue
        for metric in ALL if name == "all" else (get_metric(name),):
            made = metric()
            # A name that stands for a variant of its own keeps it.
            found.append(made if isinstance(metric, partial) else preset.get(made.key, made))
    return found
