"""Weighted ridge regression, and folds that keep sessions whole."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from steelyard.stats._sample import unit_codes

_Array = npt.NDArray[np.float64]


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
