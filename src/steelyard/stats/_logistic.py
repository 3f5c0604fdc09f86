"""A logistic curve through points, by maximum likelihood."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

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
