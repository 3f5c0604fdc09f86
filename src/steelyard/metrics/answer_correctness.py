"""The answer held against the reference: by weighted claims, by precision and recall, by similarity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from steelyard.errors import ConfigurationError
from steelyard.metrics._formulas import chances, cosine, expected_of_counts, f_beta, f_score
from steelyard.metrics._metric import Metric
from steelyard.metrics._steps import both_claims, verdicts
from steelyard.questions import Embed, MetricRun, Part, Same, Supported, Vector, YesNo, require
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


@dataclass(frozen=True, kw_only=True)
class FactualCorrectness(Metric):
    """Claims of the answer that the reference entails (precision), and the other way round (recall), in 0..1.

    Source: Ragas' `FactualCorrectness`, F = (1 + b^2) P R / (b^2 P + R). Recall is over the reference's own
    claims, so that a finer-grained answer is not favoured; `recall="counts"` is Ragas' reading, which takes
    the supported claims of the answer as true positives on both sides: R = TP / (TP + FN).
    """

    key = "factual_correctness"
    needs: ClassVar[tuple[Part, ...]] = ("answer", "reference")

    mode: Literal["f", "precision", "recall"] = "f"
    """Which of the three is the value."""
    beta: float = 1.0
    """Above 1 recall counts more, below 1 precision."""
    recall: Literal["claims", "counts"] = "claims"
    """Covered claims of the reference over all of them; or the answer's supported claims over those and the
    reference's missing ones, as Ragas counts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta <= 0:
            raise ConfigurationError(f"beta must be above 0, not {self.beta!r}")

    def questions(self, record: Record) -> MetricRun:
        """Both lists of claims first, then a verdict for each claim."""
        ours, theirs = yield from both_claims()
        if not ours or not theirs:
            which = "answer" if not ours else "reference"
            return self.not_applicable("no_claims", f"the {which} makes no claim")
        right = [Supported(claim=claim, by="reference", of="answer") for claim in ours]
        covered = [Supported(claim=claim, by="answer", of="reference") for claim in theirs]
        answers = require((yield [*right, *covered]), YesNo)
        made, known = answers[: len(ours)], answers[len(ours) :]
        found, met = sum(answer.value for answer in made), sum(answer.value for answer in known)
        precision, recall = self._sides(found, met, len(made), len(known))
        return self.scored(
            self._value(found, met, len(made), len(known)),
            expected=expected_of_counts(
                lambda one, other: self._value(one, other, len(made), len(known)),
                chances(made),
                chances(known),
            ),
            verdicts=verdicts("supported", ours, answers[: len(ours)], record=record, of_answer=True)
            + verdicts("supported", theirs, answers[len(ours) :]),
            explanation=f"precision {precision:.2f} over {len(ours)} claims of the answer, "
            f"recall {recall:.2f} over {len(theirs)} of the reference",
        )

    def _sides(self, found: int, met: int, made: int, known: int) -> tuple[float, float]:
        """Precision and recall, from supported claims of the answer and covered ones of the reference."""
        if self.recall == "claims":
            return found / made, met / known
        positive = found + known - met
        return found / made, found / positive if positive else 0.0

    def _value(self, found: int, met: int, made: int, known: int) -> float:
        precision, recall = self._sides(found, met, made, known)
        f_value = f_score(precision, recall, beta=self.beta)
        return {"f": f_value, "precision": precision, "recall": recall}[self.mode]


class CrossEncoder(Protocol):
    """A model that compares two texts directly."""

    @property
    def name(self) -> str:
        """Name with model, part of the result id."""

    def similarity(self, one: str, other: str) -> float:
        """How alike they are, in 0..1."""


@dataclass(frozen=True, kw_only=True)
class AnswerSimilarity(Metric):
    """Cosine of the embeddings of answer and reference, clipped to 0..1; no judge.

    Source: semantic answer similarity, Risch et al. 2021 (arXiv:2108.06130), in its bi-encoder form; a
    `cross_encoder`, the paper's better one, replaces the embedder.
    """

    key = "answer_similarity"
    needs: ClassVar[tuple[Part, ...]] = ("answer", "reference")

    cross_encoder: CrossEncoder | None = None
    """Compares instead of the embedder."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The cross-encoder by its name, None without one."""
        return {"cross_encoder": self.cross_encoder.name if self.cross_encoder else None}

    def questions(self, record: Record) -> MetricRun:
        """Two embeddings, or none with a cross-encoder."""
        reference = record.reference or ""
        if self.cross_encoder is not None:
            value = float(self.cross_encoder.similarity(record.answer, reference))
        else:
            asked = [Embed(text=record.answer), Embed(text=reference)]
            answer, expected = require((yield asked), Vector)
            value = cosine(answer.values, expected.values)
        if not math.isnan(value):  # which clipping would make a 0
            value = min(1.0, max(0.0, value))
        return self.scored(value, explanation=f"similarity to the reference {value:.2f}")
