"""What a formula comes to on average where a judge gives probabilities instead of bare verdicts.

A verdict of .55 and one of .99 are the same to a formula over yes and no; the expectation keeps the
difference, and ranks answers better. Verdicts are taken as independent Bernoulli draws, so expectations
of shares, F-scores, average precision and majorities are exact and need no simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
