"""RAG score: one number for several metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.errors import ConfigurationError
from steelyard.metrics._formulas import harmonic_mean
from steelyard.metrics._metric import Metric
from steelyard.metrics.answers import AnswerRelevancy, Faithfulness
from steelyard.metrics.contexts import ContextRecall, ContextRelevancy
from steelyard.questions import MetricRun, Part, ScoreOf, require
from steelyard.record import Record
from steelyard.scores import Score, Verdict


@dataclass(frozen=True, kw_only=True)
class RagScore(Metric):
    """Harmonic mean of higher-is-better metrics, in 0..1; 0 if one of them is 0 or below.

    Source: the `ragas_score` of Ragas 0.0.x. It is `not_applicable` while a part is, and fails when one
    fails. Its parts ask what they would ask by themselves, so beside the same metrics it costs nothing.
    """

    key = "rag_score"

    parts: tuple[Metric, ...] = field(
        default_factory=lambda: (Faithfulness(), AnswerRelevancy(), ContextRelevancy(), ContextRecall())
    )
    """The metrics it is made of."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if lower := [part.name for part in self.parts if part.direction == "lower"]:
            raise ConfigurationError(f"{lower!r} are better when lower; leave them out of parts=")
        if own := [part.name for part in self.parts if part.judge is not None]:
            raise ConfigurationError(f"{own!r} bring a judge; give judge= to RagScore instead")
        if not self.parts:
            raise ConfigurationError("parts must hold at least one metric")

    @property
    def needs(self) -> tuple[Part, ...]:
        """Nothing by itself: a part that lacks something says so."""
        return ()

    @property
    def options(self) -> Mapping[str, Any]:
        """The parts with their versions and options: each of them decides the value."""
        return {"parts": [[part.key, part.version, dict(part.options)] for part in self.parts]}

    @property
    def options_text(self) -> str:
        """The parts by name."""
        return "harmonic mean of " + ", ".join(part.name for part in self.parts)

    def questions(self, record: Record) -> MetricRun:
        """The Scores of its parts."""
        scores = require((yield [ScoreOf(metric=part) for part in self.parts]), Score)
        lacking = next((score for score in scores if score.status != "scored"), None)
        if lacking is not None:
            return self._without(lacking)
        mean = harmonic_mean([score.value or 0.0 for score in scores])
        lowest = min(scores, key=lambda score: score.value or 0.0)
        hard = [_hard(score) for score in scores]
        soft = any(score.hard_value is not None for score in scores)
        return self.scored(
            harmonic_mean(hard),
            expected=mean if soft else None,
            verdicts=tuple(Verdict(about=s.metric, kind="part", value=s.value) for s in scores),
            explanation=f"lowest part: {lowest.metric} {lowest.value:.2f}",
        )

    def _without(self, part: Score) -> Score:
        """What becomes of it where a part has no value."""
        explanation, cause = f"{part.metric}: {part.explanation}", part.cause or part.status
        if part.status == "failed":
            return Score.failed(self.name, cause=cause, explanation=explanation)
        return self.not_applicable(cause, explanation)


def _hard(score: Score) -> float:
    """What a part comes to on bare verdicts."""
    return (score.value if score.hard_value is None else score.hard_value) or 0.0
