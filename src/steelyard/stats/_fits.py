"""Curves through points: logistic ones by maximum likelihood, and ridge regression over folds of sessions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from steelyard.stats._sample import unit_codes

_Array = npt.NDArray[np.float64]
_STEPS = 100
_SMALL = 1e-9  # keeps the curvature invertible where the labels are separated


def fit_logistic(values: npt.ArrayLike, targets: npt.ArrayLike) -> tuple[float, float]:
    """Slope and offset of the most likely curve 1 / (1 + exp(-(slope value + offset))), by Newton's method.

    Targets may be shares: the likelihood is then Papke & Wooldridge's (Journal of Applied Econometrics 11,
    1996). A curve that would fall is flat instead: slope 0, at the targets' mean.

    Args:
        values: Any finite numbers.
        targets: What the curve should say of each, in 0..1; their mean must be in (0, 1).
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
    """Platt's targets (1999): (n+ + 1) / (n+ + 2) for good and 1 / (n- + 2) for bad ones.

    They keep the curve finite where the two kinds do not overlap.

    Args:
        labels: 1 for good and 0 for bad, or in between.
        doubt: How much is added in place of 1.
    """
    given = np.asarray(labels, float)
    good = float(given.sum())
    best, worst = (good + doubt) / (good + 2 * doubt), doubt / (len(given) - good + 2 * doubt)
    found: _Array = worst + (best - worst) * given
    return found


def fit_ridge(
    table: _Array, target: _Array, weights: _Array, ridge: float | _Array
) -> tuple[_Array, _Array, float]:
    """A weighted least-squares map whose columns are each held back as by `ridge` turns that tell nothing.

    Source: Hoerl & Kennard, Technometrics 12, 1970, with columns of equal spread.

    Returns:
        The columns' means, the slopes, and the target's mean.
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
