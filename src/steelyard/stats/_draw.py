"""Drawing a sample of fixed size with unequal, known probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.float64]


def inclusion_probabilities(sizes: npt.ArrayLike, number: int) -> _Array:
    """Probabilities in proportion to sizes that add up to `number`; none above 1.

    What would exceed 1 is taken for certain, and the rest shared out anew (Sarndal, Swensson & Wretman,
    Model Assisted Survey Sampling, 1992, section 3.6).

    Args:
        sizes: Above 0, one for each member.
        number: How many members to draw; all of them where there are no more.

    >>> inclusion_probabilities([1.0, 1.0, 2.0, 12.0], 2)
    array([0.25, 0.25, 0.5 , 1.  ])
    """
    given = np.asarray(sizes, float)
    if number >= len(given):
        return np.ones_like(given)
    certain = np.zeros(len(given), bool)
    while True:
        free = ~certain
        shares = given * ((number - certain.sum()) / given[free].sum())
        over = free & (shares >= 1)
        if not over.any():
            return np.where(certain, 1.0, shares)
        certain |= over


def systematic_sample(probabilities: npt.ArrayLike, *, rng: np.random.Generator) -> list[int]:
    """Positions of a systematic sample: member i with its probability, as many as they add up to.

    Neighbours in the list are seldom drawn together, so a list in order of groups spreads the sample over
    them (Madow, Annals of Mathematical Statistics 20, 1949).

    Args:
        probabilities: In 0..1; they should add up to a whole number.
        rng: Decides where to start.
    """
    ends = np.cumsum(np.asarray(probabilities, float))
    # Rounding in the sum must not draw one member more.
    marks = np.arange(rng.random(), ends[-1] - 1e-9, 1.0) if len(ends) else np.array([])
    found = np.searchsorted(ends, marks, side="right")
    return [int(position) for position in np.minimum(found, len(ends) - 1)]


def spread_sizes(weights: Sequence[float], groups: Sequence[int]) -> _Array:
    """Sizes in proportion to weights within a group, and to the square root of their sum between groups.

    Small groups are drawn from more often than their share, large ones less (power allocation: Bankier, The
    American Statistician 42, 1988, with q = 1/2).
    """
    given, labels = np.asarray(weights, float), np.asarray(groups, int)
    totals = np.bincount(labels, weights=given)
    sizes: _Array = given / np.sqrt(totals[labels])
    return sizes
