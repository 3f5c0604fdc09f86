"""The arithmetic that several metrics share: each formula lives here once, with its source.

And what a formula comes to on average where a judge gives probabilities instead of bare verdicts: a verdict
of .55 and one of .99 are the same to a formula over yes and no, and the expectation ranks answers better.
Verdicts are taken as independent Bernoulli draws, so expectations of shares, F-scores, average precision and
majorities are exact and need no simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from steelyard.questions import Level, YesNo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def chances(answers: Sequence[YesNo]) -> list[float] | None:
    """The judge's probability of yes for each answer; None unless it gave one for all of them."""
    found = [answer.probability for answer in answers if answer.probability is not None]
    return found if found and len(found) == len(answers) else None


def expected_share(
    probabilities: Sequence[float] | None, *, of: bool = True, counts: Sequence[int] | None = None
) -> float | None:
    """Expected share of yes (or of no), each verdict counting once or `counts` times.

    >>> expected_share([0.5, 1.0])
    0.75
    """
    if probabilities is None:
        return None
    times = counts or [1] * len(probabilities)
    share = math.fsum(c * p for c, p in zip(times, probabilities, strict=True)) / sum(times)
    return share if of else 1 - share


def expected_level(levels: Sequence[Level], worth: Mapping[float, float] | None = None) -> float | None:
    """The mean of some levels, each weighted by its probabilities; None unless every one has them.

    Args:
        levels: The judge's answers.
        worth: What each level counts as; itself where nothing is given.
    """
    means = []
    for level in levels:
        total = math.fsum(level.probabilities.values())
        if total <= 0:
            return None
        weighed = ((worth[value] if worth else value) * p for value, p in level.probabilities.items())
        means.append(math.fsum(weighed) / total)
    return math.fsum(means) / len(means) if means else None


def hits(probabilities: Sequence[float]) -> NDArray[np.float64]:
    """The probability of 0, 1, ... n hits (the Poisson binomial distribution), by adding verdicts up.

    >>> [float(p) for p in hits([0.5, 0.5])]
    [0.25, 0.5, 0.25]
    """
    import numpy as np

    found = np.ones(1)
    for p in probabilities:
        found = np.append(found * (1 - p), 0.0) + np.append(0.0, found * p)
    return found


def expected_majority(probabilities: Sequence[float] | None) -> float | None:
    """The probability that more than half of an odd number of verdicts are yes."""
    if probabilities is None:
        return None
    return float(hits(probabilities)[len(probabilities) // 2 + 1 :].sum())


def expected_of_counts(
    formula: Callable[[int, int], float], ours: Sequence[float] | None, theirs: Sequence[float] | None
) -> float | None:
    """The expectation of a formula of two counts of hits; None where a side has no probabilities."""
    if ours is None or theirs is None:
        return None
    left, right = hits(ours).tolist(), hits(theirs).tolist()
    # Counts that practically never come up would make a long answer cost seconds.
    return math.fsum(
        p * q * formula(one, other)
        for one, p in enumerate(left)
        if p > _NEVER
        for other, q in enumerate(right)
        if q > _NEVER
    )


_NEVER = 1e-9


def expected_precision(probabilities: Sequence[float] | None) -> float | None:
    """Expected average precision over ranks.

    Rank k, if it is useful, brings (hits before it + 1) / k, divided by all hits. Hits before and behind it
    are independent, so the expectation is a sum over both.

    >>> expected_precision([0.0, 1.0])
    0.5
    """
    if probabilities is None:
        return None
    import numpy as np

    total = 0.0
    before = np.ones(1)
    after = [hits(probabilities[rank:]) for rank in range(1, len(probabilities) + 1)]
    for rank, (p, behind) in enumerate(zip(probabilities, after, strict=True), start=1):
        found = np.arange(1, len(before) + 1)
        whole = found[:, None] + np.arange(len(behind))[None, :]
        total += p / rank * float((before * found) @ (1 / whole) @ behind)
        before = np.append(before * (1 - p), 0.0) + np.append(0.0, before * p)
    return total


def share(hits: Iterable[bool]) -> float:
    """Hits over all, in 0..1; not defined for nothing.

    >>> share([True, False])
    0.5
    """
    marks = list(hits)
    return sum(marks) / len(marks)


def share_error(probabilities: Sequence[float | None], counts: Sequence[int] | None = None) -> float | None:
    """Standard error of a share of yes-verdicts whose probabilities a judge gave.

    Verdicts are taken as independent Bernoulli draws: sqrt(sum p(1-p)) / n, or sqrt(sum c^2 p(1-p)) / sum c
    where a verdict counts c times. None where any probability is unknown.

    >>> share_error([0.5, 0.5, 0.5, 0.5])
    0.25
    >>> round(share_error([0.5, 0.5], [3, 1]), 3)
    0.395
    """
    known = [p for p in probabilities if p is not None]
    # An error of the known ones alone would look smaller than it is.
    if not known or len(known) < len(probabilities):
        return None
    times = counts or [1] * len(known)
    return math.sqrt(sum(c * c * p * (1 - p) for p, c in zip(known, times, strict=True))) / sum(times)


def average_precision(useful: Sequence[bool]) -> float:
    """Mean of precision@k over the ranks k that hold something useful; 0 where none does.

    Source: Manning, Raghavan & Schütze, Introduction to Information Retrieval (2008), section 8.4; used for
    context precision by Ragas (Es et al. 2024, arXiv:2309.15217, documentation of `ContextPrecision`).

    >>> average_precision([False, True])
    0.5
    """
    found, total = 0, 0.0
    for rank, hit in enumerate(useful, start=1):
        if hit:
            found += 1
            total += found / rank
    return total / found if found else 0.0


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Cosine of two vectors, in -1..1; 0 where one of them is null.

    >>> cosine([1.0, 0.0], [1.0, 0.0])
    1.0
    """
    one, other = _scaled(one), _scaled(other)
    norms = math.hypot(*one) * math.hypot(*other)
    if norms == 0:
        return 0.0
    dot = math.fsum(x * y for x, y in zip(one, other, strict=True))
    # Rounding may put equal vectors a little beyond 1.
    return max(-1.0, min(1.0, dot / norms))


def _scaled(vector: Sequence[float]) -> list[float]:
    """The same direction with 1 as the largest component: squares of very large ones have no end."""
    largest = max(map(abs, vector), default=0.0)
    return [x / largest for x in vector] if largest else list(vector)


def jaccard(one: set[str], other: set[str]) -> float:
    """Size of the intersection over size of the union, in 0..1; two empty sets agree.

    >>> jaccard({"a", "b"}, {"b", "c"})
    0.3333333333333333
    """
    return len(one & other) / len(one | other) if one | other else 1.0


def f_beta(
    true_positive: int, false_positive: int, false_negative: int, *, beta: float = 1.0
) -> float | None:
    """F-beta from counts, in 0..1; None where all counts are 0.

    (1 + b^2) TP / ((1 + b^2) TP + b^2 FN + FP); with b = 1 this is TP / (TP + 0.5 (FP + FN)).
    Source: van Rijsbergen, Information Retrieval (1979), chapter 7.

    >>> f_beta(1, 1, 1)
    0.5
    """
    weight = beta * beta
    below = (1 + weight) * true_positive + weight * false_negative + false_positive
    return (1 + weight) * true_positive / below if below else None


def f_score(precision: float, recall: float, *, beta: float = 1.0) -> float:
    """F-beta from precision and recall, in 0..1; 0 where both are 0. Source as for `f_beta`.

    >>> f_score(1.0, 0.5)
    0.6666666666666666
    """
    below = beta * beta * precision + recall
    return (1 + beta * beta) * precision * recall / below if below else 0.0


def harmonic_mean(values: Sequence[float]) -> float:
    """Harmonic mean of values that are not negative; 0 where one of them is.

    >>> harmonic_mean([1.0, 0.5])
    0.6666666666666666
    """
    least = min(values)
    if least <= 0:
        return 0.0
    # Relative to the least value: the inverse of a subnormal number would overflow.
    return len(values) * least / math.fsum(least / value for value in values)
