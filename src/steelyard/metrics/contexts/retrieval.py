"""Precision and recall of what was retrieved against the expected contexts, without a judge."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import ClassVar, Literal

from steelyard.errors import ConfigurationError
from steelyard.metrics._formulas import average_precision, share
from steelyard.metrics._metric import Metric
from steelyard.questions import MetricRun, Part
from steelyard.record import Context, Record
from steelyard.scores import Score, Verdict


@dataclass(frozen=True, kw_only=True)
class _Retrieval(Metric):
    """What the two have in common: when a retrieved context is an expected one."""

    needs: ClassVar[tuple[Part, ...]] = ("contexts", "reference_contexts")

    by: Literal["id", "text"] = "text"
    """Whether contexts are the same by id or by text."""
    similar: float = 1.0
    """With `by="text"`, the similarity (difflib's ratio, 0..1) from which two texts are the same."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.similar <= 1:
            raise ConfigurationError(f"similar must be in (0, 1], not {self.similar!r}")

    def questions(self, record: Record) -> MetricRun:
        """Nothing to ask."""
        sides = (*record.contexts, *record.reference_contexts)
        if self.by == "id" and not all(context.id for context in sides):
            return self.not_applicable("missing_ids", "some contexts have no id")
        return self.compare(record)
        yield []  # a generator that asks nothing

    def compare(self, record: Record) -> Score:
        raise NotImplementedError

    def _same(self, one: Context, other: Context) -> bool:
        if self.by == "id":
            return one.id == other.id
        left, right = " ".join(one.text.split()), " ".join(other.text.split())
        if left == right:
            return True
        if self.similar == 1:
            return False
        matcher = SequenceMatcher(None, left, right, autojunk=False)
        return matcher.real_quick_ratio() >= self.similar and matcher.ratio() >= self.similar

    def _marks(self, contexts: tuple[Context, ...], among: tuple[Context, ...]) -> list[bool]:
        return [any(self._same(context, other) for other in among) for context in contexts]


@dataclass(frozen=True, kw_only=True)
class RetrievalPrecision(_Retrieval):
    """Retrieved contexts that were expected / retrieved contexts, in 0..1.

    Source: Ragas' `IDBasedContextPrecision`; with `ranked=True` average precision over ranks, as in its
    `NonLLMContextPrecisionWithReference`.
    """

    key = "retrieval_precision"

    ranked: bool = False
    """Whether expected contexts further up count more."""

    def compare(self, record: Record) -> Score:
        """Mark each retrieved context."""
        marks = self._marks(record.contexts, record.reference_contexts)
        return self.scored(
            average_precision(marks) if self.ranked else share(marks),
            verdicts=_verdicts(record.contexts, marks, "expected"),
            explanation=f"{sum(marks)} of {len(marks)} retrieved contexts were expected",
        )


@dataclass(frozen=True, kw_only=True)
class RetrievalRecall(_Retrieval):
    """Expected contexts that were retrieved / expected contexts, in 0..1.

    Source: Ragas' `IDBasedContextRecall` and `NonLLMContextRecall`.
    """

    key = "retrieval_recall"

    def compare(self, record: Record) -> Score:
        """Mark each expected context."""
        marks = self._marks(record.reference_contexts, record.contexts)
        return self.scored(
            share(marks),
            verdicts=_verdicts(record.reference_contexts, marks, "retrieved"),
            explanation=f"{sum(marks)} of {len(marks)} expected contexts were retrieved",
        )


def _verdicts(contexts: tuple[Context, ...], marks: list[bool], kind: str) -> tuple[Verdict, ...]:
    pairs = zip(contexts, marks, strict=True)
    return tuple(Verdict(about=context.id or context.text, kind=kind, value=mark) for context, mark in pairs)
