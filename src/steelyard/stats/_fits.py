"""Curves through points: logistic ones, ridge regression over folds of sessions, and waves of days."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from steelyard.stats._estimate import normal_quantile, t_quantile
from steelyard.stats._sample import unit_codes

_Array = npt.NDArray[np.float64]
_STEPS = 100
_WAVES = 6
"""The fewest that are looked at; a third of the pieces of a longer time, waves of six pieces and more."""
_BEFORE = 6
"""Pieces of time that the sessions' own variance counts for."""
_SMALL = 1e-9  # keeps the curvature invertible where the labels are separated


def fit_logistic(values: npt.ArrayLike, targets: npt.ArrayLike) -> tuple[float, float]:
    """Slope and offset of the most likely curve 1 / (1 + exp(-(slope value + offset))), by Newton's method.

    Targets may be shares, with a mean in (0, 1): the likelihood is then Papke & Wooldridge's (Journal of
    Applied Econometrics 11, 1996). A curve that would fall is flat instead: slope 0, at the targets' mean.
    """
    given, wanted = np.asarray(values, float), np.asarray(targets, float)
    share = float(wanted.mean())
    flat = math.log(share / (1 - share))
    design = np.column_stack([given, np.ones_like(given)])
    found = np.array([0.0, flat])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        slope = design.T @ (chance - wanted)
        curve = (design * (chance * (1 - chance))[:, None]).T @ design + _SMALL * np.eye(2)
        step = np.linalg.solve(curve, slope)
        found = found - step * min(1.0, 10 / max(float(np.abs(step).max()), _SMALL))
        if float(np.abs(step).max()) < _SMALL:
            break
    return (0.0, flat) if found[0] < 0 else (float(found[0]), float(found[1]))


def smoothed_targets(labels: npt.ArrayLike, doubt: float = 1.0) -> _Array:
    """Platt's targets (1999): (n+ + 1) / (n+ + 2) for good and 1 / (n- + 2) for bad ones, with `doubt` for 1.

    They keep the curve finite where the two kinds do not overlap.
    """
    given = np.asarray(labels, float)
    good = float(given.sum())
    best, worst = (good + doubt) / (good + 2 * doubt), doubt / (len(given) - good + 2 * doubt)
    found: _Array = worst + (best - worst) * given
    return found


def fit_ridge(
    table: _Array, target: _Array, weights: _Array, ridge: float | _Array
) -> tuple[_Array, _Array, float]:
    """Columns' means, slopes and mean of a least-squares map, each held back as by `ridge` empty turns.

    Source: Hoerl & Kennard, Technometrics 12, 1970, with columns of equal spread.
    """
    weights = weights / weights.mean()
    centre, level = weights @ table / weights.sum(), float(weights @ target / weights.sum())
    left = table - centre
    square = left.T @ (left * weights[:, None])
    square += np.diag(np.maximum(ridge * square.diagonal() / len(target), 1e-6))
    slopes: _Array = np.linalg.solve(square, left.T @ (weights * (target - level)))
    return centre, slopes, level


def folds_of(sessions: Sequence[Hashable], count: int) -> npt.NDArray[np.int64]:
    """The fold of each turn, 0 to `count` - 1; turns of a session share theirs."""
    codes = np.unique(unit_codes(sessions), return_inverse=True)[1].reshape(-1)
    order = np.random.default_rng(20).permutation(int(codes.max()) + 1 if len(codes) else 0)
    found: npt.NDArray[np.int64] = order[codes] % count
    return found


def widening(
    season: _Array,
    steps: _Array,
    means: _Array,
    weights: _Array,
    *,
    variance: float,
    level: float,
    known: bool,
) -> float:
    """How many times wider an interval is by what means of pieces of time vary beyond their turns.

    Where sessions are known, days may still differ by more than their sessions do. The residual mean square
    of the pieces is held back by six pieces that vary as `variance` says, with Student's quantile (Smyth,
    Statistical Applications in Genetics and Molecular Biology 3, 2004); it widens only.

    If nobody knows which turns are alike, those that come far apart may be. How much a mean of many turns
    varies shows in the slowest waves that a model leaves of the means: the cosine estimator of the long-run
    variance, with as many degrees of freedom as there are waves, less one for each step beyond the first,
    which was put where it takes most (Lazarus, Lewis, Stock & Watson, JBES 36, 2018). Beyond all use if none
    is left.

    Args:
        season: The columns of the model of what repeats itself, a row for each piece.
        steps: Those of the changes.
        means: The pieces' means.
        weights: Of what the means are.
        variance: That of a weighted turn, as it is for the interval.
        level: The interval's coverage.
        known: Whether sessions are known.
    """
    roots, count = np.sqrt(weights), len(means)
    waves = np.cos(np.pi * np.outer(np.arange(count) + 0.5, np.arange(1, count)) / count)
    basis, triangle = np.linalg.qr(np.column_stack([season, steps, waves]) * roots[:, None])
    left = np.abs(triangle.diagonal()) > _SMALL * math.sqrt(float(weights.sum()))
    left[: season.shape[1] + steps.shape[1]] = False
    slow = (basis.T @ (roots * means))[left][: None if known else max(_WAVES, count // 3)]
    before = _BEFORE if known else 0
    freedom, tail = len(slow) + 1 - steps.shape[1] + before, (1 + level) / 2
    if freedom < 1:
        return 1 / _SMALL
    ratio = (float(slow @ slow) / variance + before) / freedom
    if known and ratio <= 1:
        return 1.0
    return math.sqrt(max(ratio, 1.0)) * t_quantile(tail, freedom) / normal_quantile(tail)
