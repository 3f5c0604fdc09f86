"""Noise sensitivity: how often do retrieved passages lead the answer astray?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from steelyard.judge.overlap import locate_all
from steelyard.metrics._formulas import chances, share
from steelyard.metrics._metric import Metric, Threshold
from steelyard.metrics._steps import both_claims, explain
from steelyard.questions import MetricRun, Part, Supported, YesNo, require
from steelyard.record import Record
from steelyard.scores import Direction, Evidence, Verdict

_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True)
class NoiseSensitivity(Metric):
    """Wrong claims that relevant (or irrelevant) contexts entail / claims, in 0..1, lower is better.

    Source: RAGChecker (Ru et al. 2024, arXiv:2408.08067), section 3.3, as in Ragas' `NoiseSensitivity`. A
    claim is wrong if the reference does not entail it; a context is relevant if it entails a claim of the
    reference. In `irrelevant` mode a claim that a relevant context entails too does not count.
    """

    key = "noise_sensitivity"
    direction: ClassVar[Direction] = "lower"
    needs: ClassVar[tuple[Part, ...]] = ("question", "answer", "contexts", "reference")

    threshold: Threshold = 0.0
    """No wrong claim is one that passages led to."""
    mode: Literal["relevant", "irrelevant"] = "relevant"
    """Which contexts are looked at."""

    def questions(self, record: Record) -> MetricRun:
        """Both lists of claims first, then each claim against each context."""
        ours, theirs = yield from both_claims()
        if not ours or not theirs:
            which = "answer" if not ours else "reference"
            return self.not_applicable("no_claims", f"the {which} makes no claim")
        ranks = len(record.contexts)
        right = [Supported(claim=claim, by="reference", of="answer") for claim in ours]
        found, wanted = _each(ours, "answer", ranks), _each(theirs, "reference", ranks)
        # In one list, so that the three kinds may share requests.
        judged = require((yield [*right, *found, *wanted]), YesNo)
        answers = [answer.value for answer in judged]
        correct, rest = answers[: len(ours)], answers[len(ours) :]
        ours_by = _rows(rest[: len(found)], ranks)
        relevant = [any(column) for column in zip(*_rows(rest[len(found) :], ranks), strict=True)]
        noisy = [
            not fine and self._led_astray(entailing, relevant)
            for fine, entailing in zip(correct, ours_by, strict=True)
        ]
        astray = [claim for claim, led in zip(ours, noisy, strict=True) if led]
        return self.scored(
            share(noisy),
            expected=self._expected(chances(judged), len(ours), ranks),
            verdicts=_verdicts(record, ours, noisy, ours_by),
            explanation=explain(astray, len(ours), f"claims are wrong and come from {self.mode} contexts"),
        )

    def _expected(self, known: list[float] | None, claims: int, ranks: int) -> float | None:
        """The expected share of wrong claims that come from such contexts, verdicts being independent."""
        if known is None:
            return None
        rest = known[claims:]
        ours = _rows(rest[: claims * ranks], ranks)
        theirs = _rows(rest[claims * ranks :], ranks)
        relevant = [1 - math.prod(1 - p for p in column) for column in zip(*theirs, strict=True)]
        total = 0.0
        for right, entailing in zip(known[:claims], ours, strict=True):
            none = math.prod(1 - p for p in entailing)
            no_relevant = math.prod(1 - p * r for p, r in zip(entailing, relevant, strict=True))
            total += (1 - right) * (1 - no_relevant if self.mode == "relevant" else no_relevant - none)
        return total / claims

    def _led_astray(self, entailing: list[bool], relevant: list[bool]) -> bool:
        by_relevant = any(hit and good for hit, good in zip(entailing, relevant, strict=True))
        if self.mode == "relevant":
            return by_relevant
        return any(entailing) and not by_relevant


def _each(claims: Sequence[str], of: Literal["answer", "reference"], ranks: int) -> list[Supported]:
    """Each claim against each context."""
    return [Supported(claim=claim, passage=rank, of=of) for claim in claims for rank in range(ranks)]


def _verdicts(
    record: Record, claims: list[str], noisy: list[bool], by_claim: list[list[bool]]
) -> tuple[Verdict, ...]:
    """One Verdict per claim, with the contexts that entail it."""
    return tuple(
        Verdict(
            about=claim,
            kind="led_astray",
            span=span,
            value=led,
            evidence=tuple(Evidence(context=rank) for rank, hit in enumerate(entailing) if hit),
        )
        for claim, led, entailing, span in zip(
            claims, noisy, by_claim, locate_all(claims, record.answer), strict=True
        )
    )


def _rows(flat: list[_Item], width: int) -> list[list[_Item]]:
    return [flat[start : start + width] for start in range(0, len(flat), width)]
