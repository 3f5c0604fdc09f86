"""Two runs of a golden set, compared case by case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from steelyard.golden._results import CaseResult, Run
from steelyard.scores import Direction
from steelyard.stats import Difference, holm, paired_difference

ALL = "all cases"
_OF_SLICES = 0.25
"""The error that slices have together, beside that of the means over all cases."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricComparison:
    """How one metric differs between two runs, over the cases that both have a score for."""

    metric: str
    slice: str
    """`all cases`, or a tag, kind or source that all of these cases share."""
    difference: Difference
    """Second less first, paired by case, with an interval."""
    direction: Direction
    adjusted_p: float = 1.0
    """The difference's p-value, adjusted for all that were compared (Holm)."""

    @property
    def clear(self) -> bool:
        """Whether it is beyond chance, however many were compared."""
        return self.adjusted_p <= 1 - self.difference.level

    @property
    def worse(self) -> bool:
        return self.clear and (self.difference.value < 0) == (self.direction == "higher")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedCase:
    """A case that is on the other side of a threshold in the second run."""

    case: str
    question: str = field(repr=False)
    metric: str
    before: float
    after: float
    passes: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What changed from one run to another."""

    differences: tuple[MetricComparison, ...]
    """By metric, over all cases first, then by slice."""
    changed: tuple[ChangedCase, ...]
    """Cases that changed sides, those that fail now first."""
    only_first: tuple[str, ...]
    """Ids of cases that only the first run has."""
    only_second: tuple[str, ...]
    """Ids of cases that only the second run has."""
    warnings: tuple[str, ...]
    """Why the two may not be comparable: another judge, another version of the set."""

    @property
    def worse(self) -> tuple[MetricComparison, ...]:
        """Metrics whose mean over all cases is worse beyond chance."""
        return tuple(one for one in self.differences if one.slice == ALL and one.worse)


def compare_runs(first: Run, second: Run, *, least: int = 5) -> Comparison:
    """Compare two runs, paired by case.

    Differences rest on cases that both runs have a score for; each weighs as many turns of production as it
    stands for. Values outside 0..1 are compared by side only.

    If nothing has changed, the probability that anything at all is called worse or better is at most .05: the
    p-values of all metrics and slices are adjusted together (`steelyard.stats.holm`), with four fifths of the
    error for the means over all cases.

    Args:
        first: The earlier run, or the baseline.
        second: The later one.
        least: A slice needs at least so many cases.
    """
    before = {case.id: case for case in first}
    pairs = [(before[case.id], case) for case in second if case.id in before]
    differences = []
    # `fromkeys` keeps the order in which metrics were given; a set would not.
    for name in dict.fromkeys([*first.metrics, *second.metrics]):
        for where, group in _slices(pairs):
            found = _difference(name, where, group, least=1 if where == ALL else least)
            if found is not None:
                differences.append(found)
    changed = sorted(
        (side for one, other in pairs for side in _sides(one, other)), key=lambda side: side.passes
    )
    after = {case.id for case in second}
    return Comparison(
        differences=tuple(adjusted(differences)),
        changed=tuple(changed),
        only_first=tuple(name for name in before if name not in after),
        only_second=tuple(case.id for case in second if case.id not in before),
        warnings=tuple(_warnings(first, second)),
    )


def adjusted(differences: Sequence[MetricComparison]) -> list[MetricComparison]:
    """The same, with p-values that hold for all of them together."""
    slices = sum(one.slice != ALL for one in differences)
    share = (len(differences) - slices) * _OF_SLICES / max(slices, 1)
    shares = [1.0 if one.slice == ALL else share for one in differences]
    p_values = [1.0 if one.difference.p_value is None else one.difference.p_value for one in differences]
    found = holm(p_values, shares)
    return [replace(one, adjusted_p=p) for one, p in zip(differences, found, strict=True)]


_Pair = tuple[CaseResult, CaseResult]


def _slices(pairs: Sequence[_Pair]) -> list[tuple[str, list[_Pair]]]:
    found: dict[str, list[_Pair]] = {ALL: list(pairs)}
    for one, other in pairs:
        names = [f"tag {tag}" for tag in dict.fromkeys(other.tags)]
        names += [f"kind {other.kind}"] if other.kind else []
        for name in [*names, f"source {other.source}"]:
            found.setdefault(name, []).append((one, other))
    # A slice that all cases are in would say the same once more.
    return [(name, group) for name, group in found.items() if name == ALL or len(group) < len(pairs)]


def _difference(metric: str, where: str, pairs: Sequence[_Pair], *, least: int) -> MetricComparison | None:
    scored = [
        (before, after, other)
        for one, other in pairs
        if (before := _value(one, metric)) is not None and (after := _value(other, metric)) is not None
    ]
    if len(scored) < least or not all(
        0 <= value <= 1 for before, after, _ in scored for value in (before, after)
    ):
        return None
    # Weights as probabilities: the lightest case is 1, one that stands for twice as many turns a half.
    lightest = min(case.weight for *_, case in scored)
    difference = paired_difference(
        [before for before, _, _ in scored],
        [after for _, after, _ in scored],
        inclusion=[lightest / case.weight for *_, case in scored],
    )
    if difference is None:
        return None
    direction = scored[0][2].metrics[metric].direction
    return MetricComparison(metric=metric, slice=where, difference=difference, direction=direction)


def _value(case: CaseResult, metric: str) -> float | None:
    found = case.metrics.get(metric)
    return None if found is None else found.value


def _sides(one: CaseResult, other: CaseResult) -> list[ChangedCase]:
    sides = []
    for name, after in other.metrics.items():
        before = one.metrics.get(name)
        if before is None or None in (before.passed, after.passed) or before.passed == after.passed:
            continue
        sides.append(
            ChangedCase(
                case=other.id,
                question=other.question,
                metric=name,
                before=before.value or 0.0,
                after=after.value or 0.0,
                passes=bool(after.passed),
            )
        )
    return sides


def _warnings(first: Run, second: Run) -> Iterator[str]:
    if first.judge != second.judge:
        yield f"the judges differ: {first.judge} and {second.judge}"
    if first.version != second.version:
        yield f"the golden sets differ: version {first.version} and {second.version}"
