"""Answer similarity: how close is the answer to the reference in meaning?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from steelyard.metrics._formulas import cosine
from steelyard.metrics._metric import Metric
from steelyard.questions import Embed, MetricRun, Part, Vector, require
from steelyard.record import Record


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
