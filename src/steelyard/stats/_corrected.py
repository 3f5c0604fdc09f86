"""The mean that people would find, from a judge's values on many turns and people's labels on a few."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from steelyard.stats._estimate import Estimate, wilson
from steelyard.stats._logistic import fit_logistic, smoothed_targets
from steelyard.stats._quantiles import t_quantile
from steelyard.stats._sample import Sample, unit_codes

_Array = npt.NDArray[np.float64]
_DOUBT = 0.5
"""What is added to the good and to the bad labels before the curve is drawn (Krichevsky & Trofimov 1981)."""
_PRIOR = 2.0  # pseudo-observations: with few labels a residual variance of nearly zero is luck
_LEAST_PRIOR = 0.1
"""How many labels speak for a judge that tells nothing, if all are 0 or 1, and at least.

Found by simulation (benchmarks/calibration.py): without it, 50 labels of which five say bad cover .93 to .95.
"""


def corrected_mean(
    judged: Sequence[float],
    labelled: Sequence[float],
    labels: Sequence[float],
    *,
    judged_inclusion: Sequence[float] | None = None,
    labelled_inclusion: Sequence[float] | None = None,
    judged_sessions: Sequence[Hashable] | None = None,
    labelled_sessions: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """What people would find on average, from many judged turns and a few that people labelled too.

    mean f(judged) over all turns + mean of (label - f(judged)) over the labelled ones: prediction-powered
    inference (Angelopoulos, Bates, Fannjiang, Jordan & Zrnic, Science 382, 2023), with f not the judge's
    value but a logistic curve drawn through the labels over it, as in survey sampling (Lehtonen & Veijanen,
    Survey Methodology 24, 1998). The second mean corrects whatever is wrong with the curve, so that the
    result is not biased if the curve fits badly; only its interval is then wider. A judge that tells nothing
    gives a flat curve, and the mean of the labels alone. f is weighted by 1 / (1 + n / N), which makes the
    variance least (PPI++, Angelopoulos, Duchi & Zrnic 2023, section 6, for a calibrated f).

    The interval is Wilson's (see `weighted_mean`) for as many labels as would tell as much by themselves:
    n / (share of the labels' variance that f leaves unexplained). So it holds near 0 and 1. If sessions are
    known, the variances of both means are as many times as large as sessions make them.

    Of labels drawn at random it is at best sqrt(1 - R^2) times as wide as that of the labels alone, R^2 being
    the share of variance that the judge explains; of turns drawn by `steelyard.calibration.drawn_to_label` at
    best E sqrt(q (1 - q)) / sqrt(p (1 - p)), with q the probability of good given the judge's value and p its
    mean. docs/how-to/calibrate.md gives numbers.

    Args:
        judged: The judge's values on all turns, or on those without a label.
        labelled: The judge's values on turns with one.
        labels: What people found there, in the same order, each in 0..1.
        judged_inclusion: The probabilities with which the turns were picked; 1 where None.
        labelled_inclusion: Those of the labelled turns, for being picked and labelled.
        judged_sessions: The session of each judged turn (see `weighted_mean`); independent turns if None.
        labelled_sessions: Those of the labelled turns.
        level: Nominal coverage.

    Raises:
        ValueError: If there are fewer than two labels or judged turns.
    """
    many, pairs, truth = (np.asarray(part, float) for part in (judged, labelled, labels))
    if len(pairs) < 2 or len(many) < 2 or len(pairs) != len(truth):
        raise ValueError("corrected_mean needs at least two judged turns and two labelled pairs")
    weights, few = _weights(judged_inclusion, len(many)), _weights(labelled_inclusion, len(pairs))
    all_size, size = 1 / float(weights @ weights), 1 / float(few @ few)
    curve, drawn = _curve(pairs, truth)
    guesses, known = curve(many), curve(pairs)
    trust = 1 / (1 + size / all_size)
    mean = float(weights @ guesses)
    left = truth - trust * (known - mean)
    value = min(max(float(few @ left), 0.0), 1.0)
    freedom = max(size - 1 - drawn, 1.0)
    share = _unexplained(value, left, truth, few) * max(size - 1, 1.0) / freedom
    spread = trust**2 * float((weights * weights) @ (guesses - mean) ** 2)
    # As many times as large as turns of a session make it, for each of the two means.
    grown, _ = _by_session(guesses, weights, judged_sessions)
    effect, units = _by_session(np.clip(left, 0, 1), few, labelled_sessions)
    freedom = max(min(freedom, units), 1.0)
    share, spread = share * effect, spread * grown
    low, high = _interval(value, size, share, spread, t_quantile((1 + level) / 2, freedom))
    return Estimate(value=value, low=low, high=high, n=len(pairs), effective_n=size, level=level)


def _by_session(values: _Array, weights: _Array, sessions: Sequence[Hashable] | None) -> tuple[float, float]:
    """The design effect of sessions, and the degrees of freedom of what they tell."""
    if sessions is None:
        return 1.0, math.inf
    found = Sample(values=values, weights=weights, units=unit_codes(sessions)).weighed
    return (1.0, math.inf) if found.units is None else (found.design_effect, found.freedom + 1)


def _weights(inclusion: Sequence[float] | None, count: int) -> _Array:
    weights: _Array = np.ones(count) if inclusion is None else 1 / np.asarray(inclusion, float)
    return weights / float(weights.sum())


def _curve(values: _Array, labels: _Array) -> tuple[Callable[[_Array], _Array], int]:
    """From the judge's value to the label expected, and how many numbers beside the mean that takes.

    Not weighted: it is only to fit where labels are.
    """
    slope, offset = fit_logistic(values, smoothed_targets(labels, _DOUBT))
    if slope <= 0 or values.min() == values.max():
        return lambda given: np.full_like(given, labels.mean()), 0
    return lambda given: 1 / (1 + np.exp(-np.clip(slope * given + offset, -30, 30))), 1


def _unexplained(mean: float, left: _Array, labels: _Array, weights: _Array) -> float:
    """The variance of what the curve leaves, beside that of zeros and ones of the same mean."""
    largest = mean * (1 - mean)
    ends = float(np.count_nonzero((labels <= 0) | (labels >= 1))) / len(labels)
    prior = max(_PRIOR * ends, _LEAST_PRIOR)
    if largest < 1e-12:
        return 1.0
    size = 1 / float(weights @ weights)
    found = float((weights * weights) @ (left - weights @ left) ** 2) * size / largest
    return (size * found + prior) / (size + prior)


def _interval(value: float, size: float, share: float, spread: float, quantile: float) -> tuple[float, float]:
    largest = value * (1 - value)
    trials = size / share if largest < 1e-12 else largest / (share * largest / size + spread)
    return wilson(value, trials, quantile)
