"""RAG score: one number for several metrics."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.errors import ConfigurationError
from steelyard.metrics._formulas import harmonic_mean
from steelyard.metrics._metric import Metric
from steelyard.metrics.answer_relevancy import AnswerRelevancy
from steelyard.metrics.context_recall import ContextRecall
from steelyard.metrics.context_relevancy import ContextRelevancy
from steelyard.metrics.faithfulness import Faithfulness
from steelyard.questions import Answer, MetricRun, Part, Question
from steelyard.record import Record
from steelyard.scores import Score, Verdict

__all__ = ["RagScore"]

_Together = Generator[Sequence[Question], Sequence[Answer], list[Score]]


def _default() -> tuple[Metric, ...]:
    return (Faithfulness(), AnswerRelevancy(), ContextRelevancy(), ContextRecall())


@dataclass(frozen=True, kw_only=True)
class RagScore(Metric):
    """Harmonic mean of higher-is-better metrics, in 0..1; 0 if one of them is 0 or below.

    Source: the `ragas_score` of Ragas 0.0.x. It is `not_applicable` while a part is, and fails when one
    fails. Its parts ask what they would ask by themselves, so beside the same metrics it costs nothing.
    """

    key = "rag_score"

    parts: tuple[Metric, ...] = field(default_factory=_default)
    """The metrics it is made of."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if lower := [part.instance for part in self.parts if part.direction == "lower"]:
            raise ConfigurationError(f"{lower!r} are better when lower; leave them out of parts=")
        if own := [part.instance for part in self.parts if part.judge is not None]:
            raise ConfigurationError(f"{own!r} bring a judge; give judge= to RagScore instead")
        if not self.parts:
            raise ConfigurationError("parts must hold at least one metric")

    @property
    def needs(self) -> tuple[Part, ...]:
        return ()

    @property
    def options(self) -> Mapping[str, Any]:
        return {"parts": [[part.key, part.version, dict(part.options)] for part in self.parts]}

    @property
    def how(self) -> str:
        return "harmonic mean of " + ", ".join(part.instance for part in self.parts)

    def questions(self, record: Record) -> MetricRun:
        """Whatever its parts ask, round by round."""
        scores = yield from _together(self.parts, record)
        for score in scores:
            if score.status != "scored":
                explanation = f"{score.metric}: {score.explanation}"
                cause = score.cause or score.status
                if score.status == "failed":
                    return Score.failed(self.instance, cause=cause, explanation=explanation)
                return self.not_applicable(cause, explanation)
        values = [score.value or 0.0 for score in scores]
        lowest = min(scores, key=lambda score: score.value or 0.0)
        return self.scored(
            harmonic_mean(values),
            verdicts=tuple(Verdict(about=s.metric, kind="part", value=s.value) for s in scores),
            explanation=f"lowest part: {lowest.metric} {lowest.value:.2f}",
        )


def _together(metrics: Sequence[Metric], record: Record) -> _Together:
    """Run several metrics side by side as one; use with `yield from`."""
    running: dict[int, tuple[MetricRun, Sequence[Question]]] = {}
    done: dict[int, Score] = {}

    def advance(number: int, asking: MetricRun, answers: Sequence[Answer] | None) -> None:
        try:
            running[number] = (asking, next(asking) if answers is None else asking.send(answers))
        except StopIteration as stop:
            running.pop(number, None)
            done[number] = stop.value

    for number, metric in enumerate(metrics):
        advance(number, metric.ask(record), None)
    while running:
        current = list(running.items())
        answers = yield [question for _, (_, questions) in current for question in questions]
        start = 0
        for number, (asking, questions) in current:
            advance(number, asking, answers[start : start + len(questions)])
            start += len(questions)
    return [done[number] for number in range(len(metrics))]
