"""Which part of the traffic explains a low or a fallen mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.stats._difference import Difference, difference_of
from steelyard.stats._mean import moments
from steelyard.stats._moments import Moments
from steelyard.stats._quantiles import two_sided_p

_Array = npt.NDArray[np.float64]
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice:
    """A part of the traffic that stands out."""

    name: str
    """Which attribute: `tag`, `model`, `language`, ..."""
    value: str
    """Its value in this slice."""
    n: int
    """Turns in the slice, after the fall where there is one."""
    share: float
    """Weight of the slice among all turns, 0..1."""
    difference: Difference
    """Slice - rest; of a fall: the slice after - before."""
    p: float
    """Probability of so large a difference if the slice were like the rest."""
    q: float
    """The same, corrected for the number of slices looked at."""


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: taking those below q as found gives at most q false ones among them on average.

    Source: Benjamini & Hochberg, JRSS B 57, 1995, procedure (1), as adjusted values.

    >>> [round(q, 3) for q in benjamini_hochberg([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    count = len(p_values)
    adjusted = [1.0] * count
    least = 1.0
    for rank, index in zip(
        range(count, 0, -1), sorted(range(count), key=lambda i: -p_values[i]), strict=True
    ):
        least = min(least, p_values[index] * count / rank)
        adjusted[index] = least
    return adjusted


def find_slices(
    values: Sequence[float],
    attributes: Mapping[str, Sequence[str | None]],
    *,
    inclusion: Sequence[float] | None = None,
    after: Sequence[bool] | None = None,
    level: float = 0.05,
    minimum: int = 10,
) -> list[Slice]:
    """The slices that differ from the rest, most certain first; false discoveries kept to `level`.

    Args:
        values: In 0..1.
        attributes: For each attribute its value on each turn, None where a turn has none.
        inclusion: The probability with which each turn was picked; 1 where None.
        after: Whether each turn belongs to the later period. Where given, a slice stands out if it changed
            otherwise than the rest did between the periods; else if its mean differs from the rest's.
        level: The false discovery rate that is accepted (Benjamini & Hochberg).
        minimum: Slices, and rests, of fewer turns (in each period) are left out.
    """
    data = np.asarray(values, float)
    weights = np.ones(len(data)) if inclusion is None else 1 / np.asarray(inclusion, float)
    periods = None if after is None else np.asarray(after, bool)
    found: list[tuple[str, str, _Mask, float]] = []
    for name, column in attributes.items():
        known = np.array([value or "" for value in column], dtype=object)
        for value in sorted({value for value in column if value}):
            inside = known == value
            z = _distance(data, weights, inside, periods, minimum)
            if z is not None:
                found.append((name, value, inside, two_sided_p(z)))
    adjusted = benjamini_hochberg([p for *_, p in found])
    slices = [
        _slice(name, value, p, q, _Sample(data, weights, inside, periods))
        for (name, value, inside, p), q in zip(found, adjusted, strict=True)
        if q <= level
    ]
    return sorted(slices, key=lambda one: (one.p, one.name, one.value))


def _distance(
    data: _Array, weights: _Array, inside: _Mask, after: _Mask | None, minimum: int
) -> float | None:
    """How many standard errors the slice is away from the rest; None where there are too few turns."""
    total = variance = 0.0
    for period, sign in (
        [(np.ones(len(data), bool), 1.0)] if after is None else [(after, 1.0), (~after, -1.0)]
    ):
        if int(period.sum()) < 2 * minimum:
            return None
        weight, value = weights[period], data[period]
        pooled = float(weight @ value) / float(weight.sum())
        # As if the slice were like the rest (a score test): its own variance would make rare failures
        # that happen to be absent look certain.
        spread = float(np.sum(weight**2 * (value - pooled) ** 2) / np.sum(weight**2))
        for cell, side in ((inside[period], sign), (~inside[period], -sign)):
            if int(cell.sum()) < minimum:
                return None
            own = weight[cell]
            total += side * float(own @ value[cell]) / float(own.sum())
            variance += spread * float(own @ own) / float(own.sum()) ** 2
    return total / math.sqrt(variance) if variance > 0 else None


@dataclass(frozen=True, slots=True)
class _Sample:
    data: _Array
    weights: _Array
    inside: _Mask
    after: _Mask | None

    def sums(self, mask: _Mask) -> Moments:
        return moments(self.data[mask].tolist(), (1 / self.weights[mask]).tolist())


def _slice(name: str, value: str, p: float, q: float, sample: _Sample) -> Slice:
    inside, after = sample.inside, sample.after
    if after is None:
        first, second = ~inside, inside
    else:
        first, second = inside & ~after, inside & after
    difference = difference_of(sample.sums(first), sample.sums(second))
    assert difference is not None
    return Slice(
        name=name,
        value=value,
        n=int(second.sum()),
        share=float(sample.weights[inside].sum() / sample.weights.sum()),
        difference=difference,
        p=p,
        q=q,
    )
