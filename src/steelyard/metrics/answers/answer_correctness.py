"""Answer correctness: does the answer make the claims of the reference, and no others?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.errors import ConfigurationError
from steelyard.metrics._expected import chances, expected_of_counts
from steelyard.metrics._formulas import cosine, f_beta
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import both_claims, verdicts
from steelyard.questions import Embed, MetricRun, Part, Same, Vector, YesNo, require
from steelyard.record import Record


@dataclass(frozen=True, kw_only=True)
class AnswerCorrectness(Metric):
    """Weighted mean of the F-beta of claims and the similarity of the texts, in 0..1.

    Source: Ragas' `AnswerCorrectness`. TP: claims of the answer that the reference makes too; FP: those it
    does not make; FN: claims of the reference that the answer does not make. Similarity: cosine of the
    embeddings of answer and reference, clipped to 0..1; with a weight of 0 it is not asked for. As there,
    claims are compared with the claims of the other text; those in the same words need no judge.
    """

    key = "answer_correctness"
    needs: ClassVar[tuple[Part, ...]] = ("question", "answer", "reference")
    version = "3"

    weights: tuple[float, float] = (0.75, 0.25)
    """Of the claims and of the similarity; they are normalised."""
    beta: float = 1.0
    """Above 1 recall of the reference counts more, below 1 precision."""

    def __post_init__(self) -> None:
        super().__post_init__()
        weights: Sequence[float] = self.weights
        if len(weights) != 2 or min(weights) < 0 or sum(weights) <= 0 or self.beta <= 0:
            raise ConfigurationError(
                f"weights={self.weights!r} must be two numbers >= 0, not both 0; "
                f"beta={self.beta!r} must be above 0"
            )

    def questions(self, record: Record) -> MetricRun:
        """Both lists of claims first, then a verdict for each claim, with the embeddings alongside."""
        ours, theirs = yield from both_claims()
        made = _compared(ours, theirs, of="answer", among="reference")
        known = _compared(theirs, ours, of="reference", among="answer")
        asked = [question for question in (*made, *known) if isinstance(question, Same)]
        texts = [Embed(text=record.answer), Embed(text=record.reference or "")] if self.weights[1] else []
        answers = (yield [*asked, *texts]) if asked or texts else []
        found = iter(require(answers[: len(asked)], YesNo))
        judged = [next(found) if isinstance(one, Same) else one for one in (*made, *known)]
        true_positive = sum(answer.value for answer in judged[: len(made)])
        missed = sum(not answer.value for answer in judged[len(made) :])
        factual = f_beta(true_positive, len(made) - true_positive, missed, beta=self.beta)
        if factual is None:
            return self.not_applicable("no_claims", "neither the answer nor the reference makes a claim")
        similarity = 0.0
        if texts:
            answer, expected = require(answers[-2:], Vector)
            similarity = max(0.0, cosine(answer.values, expected.values))
        soft = self._expected(judged[: len(made)], judged[len(made) :], similarity)
        return self.scored(
            self._weighted(factual, similarity),
            expected=soft,
            verdicts=verdicts("same", ours, judged[: len(ours)], record=record, of_answer=True)
            + verdicts("same", theirs, judged[len(ours) :]),
            explanation=f"{true_positive} claims agree, {len(made) - true_positive} are not in the "
            f"reference, {missed} of the reference are missing; F {factual:.2f}, similarity {similarity:.2f}",
        )

    def _expected(self, made: Sequence[YesNo], known: Sequence[YesNo], similarity: float) -> float | None:
        """The expected value: the similarity is exact, so that it is linear in the expected F."""
        factual = expected_of_counts(
            lambda hit, met: f_beta(hit, len(made) - hit, len(known) - met, beta=self.beta) or 0.0,
            _chances(made),
            _chances(known),
        )
        return None if factual is None else self._weighted(factual, similarity)

    def _weighted(self, factual: float, similarity: float) -> float:
        return (self.weights[0] * factual + self.weights[1] * similarity) / sum(self.weights)


def _chances(judged: Sequence[YesNo]) -> list[float] | None:
    """The judge's probabilities of one side, which may have no claim at all."""
    return chances(judged) if judged else []


def _compared(
    claims: Sequence[str],
    others: Sequence[str],
    *,
    of: Literal["answer", "reference"],
    among: Literal["answer", "reference"],
) -> list[Same | YesNo]:
    """For each claim the question whether the others make it too, or a yes where one has the same words."""
    there = {_words(other) for other in others}
    return [
        YesNo(value=True, probability=1.0, reason="in the same words")
        if _words(claim) in there
        else Same(claim=claim, among=among, of=of, listed=tuple(others))
        for claim in claims
    ]


def _words(claim: str) -> str:
    return " ".join(claim.casefold().split()).rstrip(".")
