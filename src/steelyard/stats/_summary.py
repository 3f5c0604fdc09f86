"""What a set of Evaluations adds up to, per metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steelyard.scores import Direction, Evaluation, Score, Usage
from steelyard.stats._estimate import Estimate
from steelyard.stats._open_units import OpenSums


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSummary:
    """One metric over many records. Scores without a value are counted, never averaged in."""

    metric: str
    direction: Direction
    threshold: float | None
    mean: float | None
    """Mean of the values, each weighted by 1 / its inclusion probability; None where nothing was scored."""
    estimate: Estimate | None
    pass_rate: Estimate | None
    """The share of turns on the right side of the threshold, weighted as the mean is; None without one."""
    scored: int
    passed: int
    """Of those, on the right side of the threshold."""
    below: int
    """Of those, on the wrong side of it."""
    not_applicable: Mapping[str, int]
    """Counts by cause."""
    failed: Mapping[str, int]
    """Counts by cause."""
    explanations: Mapping[str, str]
    """One example explanation for each cause."""
    worst: tuple[tuple[str, Score], ...]
    """Record ids and Scores of the worst few, worst first."""


@dataclass(slots=True)
class _Tally:
    """One metric's running sums."""

    first: Score
    values: OpenSums = field(default_factory=OpenSums)
    passes: OpenSums = field(default_factory=OpenSums)
    marks: Counter[bool | None] = field(default_factory=Counter)
    """Of scores with a value, on which side of the threshold they are."""
    missing: dict[str, Counter[str]] = field(
        default_factory=lambda: {"not_applicable": Counter(), "failed": Counter()}
    )
    explanations: dict[str, str] = field(default_factory=dict)
    worst: list[tuple[str, Score]] = field(default_factory=list)

    def add(self, evaluation: Evaluation, score: Score, keep: int) -> None:
        if score.value is None:
            cause = score.cause or "unknown"
            self.missing[score.status][cause] += 1
            self.explanations.setdefault(cause, score.explanation)
            return
        self.marks[score.passed] += 1
        unit, inclusion = evaluation.unit, score.inclusion_probability
        self.values.add(score.value, inclusion, session=unit)
        if score.passed is not None:
            self.passes.add(float(score.passed), inclusion, session=unit)
        self.worst.append((evaluation.record_id, score))
        self.worst.sort(key=lambda pair: _goodness(pair[1]))
        del self.worst[keep:]

    def summary(self) -> MetricSummary:
        return MetricSummary(
            metric=self.first.metric,
            direction=self.first.direction,
            threshold=self.first.threshold,
            mean=self.values.turns.mean,
            estimate=self.values.estimate(),
            pass_rate=self.passes.estimate(),
            scored=self.marks.total(),
            passed=self.marks[True],
            below=self.marks[False],
            not_applicable=dict(self.missing["not_applicable"]),
            failed=dict(self.missing["failed"]),
            explanations=dict(self.explanations),
            worst=tuple(self.worst),
        )


def _goodness(score: Score) -> float:
    assert score.value is not None
    return score.value if score.direction == "higher" else -score.value


class Summarizer:
    """Adds up Evaluations one by one, in bounded memory; turns of one user, or session, count together."""

    def __init__(self, *, worst: int = 5) -> None:
        self._keep = worst
        self._tallies: dict[str, _Tally] = {}
        self.usage = Usage()
        self.records = 0

    def add(self, evaluation: Evaluation) -> None:
        self.records += 1
        self.usage += evaluation.usage
        for score in evaluation.scores:
            tally = self._tallies.setdefault(score.metric, _Tally(score))
            tally.add(evaluation, score, self._keep)

    def add_all(self, evaluations: Iterable[Evaluation]) -> Summarizer:
        """Take many into account; returns itself."""
        for evaluation in evaluations:
            self.add(evaluation)
        return self

    def metrics(self) -> tuple[MetricSummary, ...]:
        return tuple(tally.summary() for tally in self._tallies.values())
