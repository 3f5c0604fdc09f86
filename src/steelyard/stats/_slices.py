"""Which part of the traffic is unlike the rest."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from steelyard.stats._difference import Difference, sample_difference
from steelyard.stats._estimate import t_two_sided_p, two_sided_p
from steelyard.stats._sample import Sample, sample_of

_Array = npt.NDArray[np.float64]
_Mask = npt.NDArray[np.bool_]
_LEAST = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice:
    """A part of the traffic that stands out."""

    name: str
    """Which attribute: `tag`, `model`, `language`, ..."""
    value: str
    """Its value in this slice."""
    n: int
    """Turns in the slice."""
    share: float
    """Weight of the slice among all turns, 0..1."""
    difference: Difference
    """Slice - rest."""
    p: float
    """Probability of so large a difference if the slice were like the rest."""
    q: float
    """The same, corrected for the number of slices looked at."""


def find_slices(
    values: Sequence[float] | Sample,
    attributes: Mapping[str, Sequence[str | None]],
    *,
    inclusion: Sequence[float] | None = None,
    sessions: Sequence[Hashable] | None = None,
    than_rest: Literal["lower", "higher"] | None = None,
    level: float = 0.05,
) -> list[Slice]:
    """The slices that differ from the rest, most certain first; false discoveries kept to `level`.

    Slices, and rests, of fewer than ten turns or sessions are left out.

    Args:
        values: In 0..1; or a sample, which has its own probabilities and sessions.
        attributes: For each attribute its value on each turn, None if a turn has none.
        inclusion: The probability with which each turn was picked; 1 if None.
        sessions: The session of each turn (see `weighted_mean`); independent turns if None. An attribute that
            is the same in all turns of a session varies from session to session only.
        than_rest: Which slices are reported: lower ones, higher ones, or both.
        level: The false discovery rate that is accepted (Benjamini & Hochberg).
    """
    sample = sample_of(values, inclusion, sessions)
    found = [
        (name, value, inside, p)
        for name, value, inside in _cut(attributes)
        if (p := _p_value(sample, inside)) is not None
    ]
    adjusted = _adjusted([p for *_, p in found])
    slices: list[Slice] = []
    others = np.ones(len(sample), bool)
    for p, name, value, inside, q in sorted(
        ((p, name, value, inside, q) for (name, value, inside, p), q in zip(found, adjusted, strict=True)),
        key=lambda one: one[:3],
    ):
        if than_rest and (than_rest == "lower") != (sample.part(inside).mean < sample.part(~inside).mean):
            continue
        if q <= level and not _explained(sample, inside, others, level / len(found)):
            slices.append(_slice(name, value, p, q, sample, inside))
            others &= ~inside
    return slices


def _adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: taking those below q as found gives at most q false ones among them on average.

    Benjamini & Hochberg (JRSS B 57, 1995), procedure (1).

    >>> [round(q, 3) for q in _adjusted([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    order = np.argsort(p_values)[::-1]
    ranks = np.arange(len(order), 0, -1)
    adjusted = np.ones(len(order))
    adjusted[order] = np.minimum.accumulate(np.minimum(np.array(p_values)[order] * len(order) / ranks, 1.0))
    return [float(q) for q in adjusted]


def _cut(attributes: Mapping[str, Sequence[str | None]]) -> Iterator[tuple[str, str, _Mask]]:
    """Each value of each attribute, and which turns have it."""
    for name, column in attributes.items():
        known = np.array([value or "" for value in column], dtype=object)
        for value in sorted({value for value in column if value}):
            yield name, value, known == value


def _explained(sample: Sample, inside: _Mask, others: _Mask, level: float) -> bool:
    """Whether a slice is like the rest once more certain ones are left out of both.

    If one tenant is worse, each of the others stands out from a rest that holds that tenant.
    """
    if others.all():
        return False
    p = _p_value(sample.part(others), inside[others])
    # Of one that has no turns of its own left, all has been said.
    return p is None or p > level


def _p_value(sample: Sample, inside: _Mask) -> float | None:
    """The probability of so large a difference if the slice were like the rest; None of too few turns.

    The turns' values less the mean of all, weighted so that they add up to the difference, vary by session:
    a score test, as if the slice were like the rest, since its own variance would make rare failures that
    happen to be absent look certain.
    """
    fewest = min(_units(sample, inside), _units(sample, ~inside))
    if fewest < _LEAST:
        return None
    away, shares = sample.values - sample.mean, np.zeros(len(sample))
    for cell, side in ((inside, 1.0), (~inside, -1.0)):
        shares[cell] = side * sample.weights[cell] / float(sample.weights[cell].sum())
    variance = _variance(sample, away, shares)
    if variance <= 0:
        return None
    # The smaller side tells how certain the variance is; independent turns share theirs.
    distance = abs(float(shares @ away)) / math.sqrt(variance)
    return two_sided_p(distance) if sample.units is None else t_two_sided_p(distance, fewest - 1)


def _units(sample: Sample, cell: _Mask) -> int:
    told = cell & (sample.counted > 0)
    return int(told.sum()) if sample.units is None else len(np.unique(sample.units[told]))


def _variance(sample: Sample, away: _Array, shares: _Array) -> float:
    """Of the sum of shares x away, if turns of each session are as alike as they are on average."""
    weights = sample.weights
    spread = float(np.sum((weights * away) ** 2) / np.sum(weights**2))
    alone = float(shares @ shares)
    if sample.units is None:
        return spread * alone
    # What turns of one session have in common, by pairs of them.
    pairs = float(np.sum(sample.totals(weights) ** 2) - np.sum(weights**2))
    common = float(np.sum(sample.totals(weights * away) ** 2) - np.sum((weights * away) ** 2))
    alike = min(max(common / pairs / spread, 0.0), 1.0) if pairs > 0 and spread > 0 else 0.0
    together = float(np.sum(sample.totals(shares) ** 2)) - alone
    return spread * (alone + alike * together)


def _slice(name: str, value: str, p: float, q: float, sample: Sample, inside: _Mask) -> Slice:
    difference = sample_difference(sample.part(~inside), sample.part(inside))
    assert difference is not None
    return Slice(
        name=name,
        value=value,
        n=int(sample.counted[inside].sum()),
        share=float(sample.weights[inside].sum() / sample.weights.sum()),
        difference=difference,
        p=p,
        q=q,
    )
