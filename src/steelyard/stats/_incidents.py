"""Which part of the traffic changed, and when: a scan over all slices and all moments at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from steelyard.stats._difference import Difference, sample_difference
from steelyard.stats._sample import Sample
from steelyard.stats._slices import each_slice

_Array = npt.NDArray[np.float64]
_Codes = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]
_DRAWS = 300
_SAME = 0.8
"""Share of common turns (Jaccard) from which two slices are the same turns under two names."""
_PLACE = 7.35
"""What the squared statistic of a moment may lack, for the moment to lie in the 95 % confidence set of a
change (Hansen, Econometrica 68, 2000, table 1)."""
_EULER = 0.5772156649
_LEAST = 10
"""Turns and sessions that a slice needs before and after a moment."""
_MOST = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Incident:
    """A slice whose mean changed otherwise than that of the rest."""

    names: tuple[tuple[str, str], ...]
    """Attribute and value of the slice, then those of other slices that are the same turns."""
    since: float
    """Unix time at which what came after begins."""
    earliest: float
    """The first moment that explains as much, at 95 %."""
    latest: float
    difference: Difference
    """The slice after - the slice before."""
    against: float
    """By how much more the slice changed than all turns did."""
    share: float
    """Weight of the slice among all turns, 0..1."""
    turns: float
    """How many turns of the application those since then stand for."""
    p: float
    """The probability that, if nothing changed, any slice at any moment would stand out as much."""
    inside: _Mask = field(repr=False)
    """Which turns are in the slice."""


@dataclass(frozen=True)
class _Scan:
    """Turns in order of time, without what happened to all of them on that day."""

    sample: Sample
    pieces: _Codes
    signs: npt.NDArray[np.float32]
    start: float
    width: float

    @property
    def count(self) -> int:
        return int(self.pieces[-1]) + 1

    @cached_property
    def weights(self) -> _Array:
        """Of all turns in each piece."""
        return np.bincount(self.pieces, self.sample.weights).astype(float)

    @cached_property
    def away(self) -> _Array:
        """Values less the mean of all turns in their piece of time."""
        totals = np.bincount(self.pieces, self.sample.weights * self.sample.values)
        means: _Array = totals / np.where(self.weights > 0, self.weights, 1)
        return self.sample.values - means[self.pieces]

    @cached_property
    def drawn(self) -> _Array:
        """What each draw makes of all turns in each piece."""
        return self.sums(np.arange(len(self.sample)), self.sample.weights * self.away)

    def sums(self, place: npt.NDArray[np.intp], deviations: _Array) -> _Array:
        """What each draw makes of some turns in each piece."""
        pieces = self.pieces[place]
        first = np.flatnonzero(np.diff(pieces, prepend=-1))
        found = np.zeros((len(self.signs), self.count))
        drawn = self.signs[:, place] * deviations.astype(np.float32)
        found[:, pieces[first]] = np.add.reduceat(drawn, first, axis=1)
        return found

    def part(self, where: _Mask) -> _Scan:
        sample, pieces = self.sample.part(where), self.pieces[where]
        return _Scan(sample, pieces, self.signs[:, where], self.start, self.width)


def find_incidents(
    sample: Sample,
    times: Sequence[float] | _Array,
    attributes: Mapping[str, Sequence[str | None]],
    *,
    width: float = 86400.0,
    level: float = 0.05,
) -> list[Incident]:
    """The slices that changed otherwise than the rest, from one moment on, the most certain first.

    From each value the mean of all turns in its piece of time is taken, so that what happens to everybody, as
    weeks do, is in no slice. Each slice is then split at each moment, and the most certain split of all is
    held against the largest that chance brings: the same scan with the sign of each session's deviations
    drawn at random (Chernozhukov, Chetverikov & Kato, Annals of Statistics 41, 2013), with Gumbel's
    distribution for its tail (Abrams, Kulldorff & Kleinman, International Journal of Health Geographics 9,
    2010). So the level holds for all slices and moments together, however they overlap. The turns of the most
    certain one are then left out, and the scan begins anew (Zhang, Assuncao & Kulldorff, Journal of
    Probability and Statistics, 2010).

    Args:
        sample: The turns' values, in 0..1.
        times: Unix time of each.
        attributes: For each attribute its value on each turn, None if a turn has none. If two slices are the
            same turns, the one whose attribute comes first gives the name.
        width: Seconds of a piece of time.
        level: The probability of any false finding, if nothing changed.
    """
    order = np.argsort(np.asarray(times, float), kind="stable")
    if not len(order):
        return []
    moments = np.asarray(times, float)[order]
    sample = sample.part(order)
    start = math.floor(float(moments[0]) / width) * width
    pieces = ((moments - start) // width).astype(np.int64)
    slices = {
        (name, value): inside[order]
        for name, value, inside in each_slice(attributes)
        if 2 * _LEAST <= inside.sum() < len(order)
    }
    draw = np.random.default_rng(len(order))
    units = np.arange(len(order)) if sample.units is None else sample.units
    signs = draw.choice(np.array([-1, 1], np.float32), (_DRAWS, int(units.max()) + 1))[:, units]
    scan = _Scan(sample, pieces, signs, start, width)
    found: list[Incident] = []
    left = np.ones(len(order), bool)
    back = np.argsort(order)
    while len(found) < _MOST:
        one = _strongest(scan.part(left) if found else scan, slices, left)
        if one is None or one.p > level:
            break
        told, left = one, left & ~one.inside
        found.append(replace(told, inside=told.inside[back]))
    return found


def _strongest(scan: _Scan, slices: Mapping[tuple[str, str], _Mask], left: _Mask) -> Incident | None:
    """The slice and the moment at which it is least like chance."""
    curves: dict[tuple[str, str], _Array] = {}
    largest = np.zeros(_DRAWS)
    for name, everywhere in slices.items():
        inside = everywhere[left]
        if (found := _curve(scan, inside)) is None:
            continue
        curves[name], drawn = found
        np.maximum(largest, drawn, out=largest)
    if not curves:
        return None
    name = max(curves, key=lambda one: float(np.abs(curves[one]).max()))
    curve = curves[name]
    border = int(np.abs(curve).argmax())
    height = float(abs(curve[border]))
    scale = float(largest.std()) * math.sqrt(6) / math.pi
    if scale <= 1e-9:  # so few sessions that each draw is like the others
        return None
    p = -math.expm1(-math.exp(-(height - float(largest.mean()) + _EULER * scale) / scale))
    near = np.flatnonzero(curve * math.copysign(1.0, curve[border]) >= math.sqrt(max(height**2 - _PLACE, 0)))
    inside, later = slices[name][left], scan.pieces > border
    before, after = scan.sample.part(inside & ~later), scan.sample.part(inside & later)
    difference = sample_difference(before, after)
    assert difference is not None
    return Incident(
        names=(name, *_same(slices, name, left)),
        since=scan.start + (border + 1) * scan.width,
        earliest=scan.start + (int(near[0]) + 1) * scan.width,
        latest=scan.start + (int(near[-1]) + 1) * scan.width,
        difference=difference,
        against=_mean(scan, inside & later) - _mean(scan, inside & ~later),
        share=float(scan.sample.weights[inside].sum()) / scan.sample.weight,
        turns=after.weight,
        p=p,
        inside=slices[name] & left,
    )


def _mean(scan: _Scan, where: _Mask) -> float:
    weights = scan.sample.weights[where]
    return float(weights @ scan.away[where]) / float(weights.sum())


def _same(
    slices: Mapping[tuple[str, str], _Mask], name: tuple[str, str], left: _Mask
) -> list[tuple[str, str]]:
    own = slices[name] & left
    return [
        other
        for other, inside in slices.items()
        if other != name and (own & inside & left).sum() >= _SAME * ((own | inside) & left).sum()
    ]


def _curve(scan: _Scan, inside: _Mask) -> tuple[_Array, _Array] | None:
    """A slice's statistic after each piece of time, and the largest that each draw brings.

    Its variance is that over the draws, but at least what the slice's own over the whole time comes to: a
    part in which rare failures happen to be absent tells nothing of how they vary.
    """
    place = np.flatnonzero(inside)
    if len(place) < 2 * _LEAST:
        return None
    pieces, weights = scan.pieces[place], scan.sample.weights[place]
    tried = np.minimum(*_units(scan, place, pieces)) >= _LEAST
    if not tried.any():
        return None
    away = scan.away[place]
    deviations = weights * (away - weights @ away / weights.sum())
    total, squares = (np.bincount(pieces, one, scan.count).cumsum() for one in (weights, weights * weights))
    # The mean of all turns varies as well, by the slice's share of each piece.
    share = np.bincount(pieces, weights, scan.count) / np.where(scan.weights > 0, scan.weights, 1)
    drawn = (scan.sums(place, deviations) - share * scan.drawn).cumsum(axis=1)
    before, lesser = total[:-1][tried], squares[:-1][tried]
    after = total[-1] - before

    def contrast(sums: _Array) -> _Array:
        """The mean after - the mean before each moment, from running sums."""
        first = sums[..., :-1][..., tried]
        split: _Array = (sums[..., -1:] - first) / after - first / before
        return split

    chance = contrast(drawn)
    own = float(np.mean(drawn[:, -1] ** 2)) / float(squares[-1])
    least = own * (lesser / before**2 + (squares[-1] - lesser) / after**2)
    error = np.sqrt(np.maximum(np.mean(chance * chance, axis=0), least))
    if float(error.min()) <= 0:
        return None
    curve = np.zeros(scan.count - 1)
    curve[tried] = contrast(np.bincount(pieces, deviations, scan.count).cumsum()) / error
    return curve, np.abs(chance / error).max(axis=1)


def _units(scan: _Scan, place: _Codes, pieces: _Codes) -> tuple[_Codes, _Codes]:
    """How many sessions a slice has before and after the end of each piece but the last."""
    told = scan.sample.counted[place] > 0
    place, pieces = place[told], pieces[told]
    units = np.arange(len(place)) if scan.sample.units is None else scan.sample.units[place]
    borders = np.arange(scan.count - 1)
    first = np.sort(pieces[np.unique(units, return_index=True)[1]])
    last = np.sort(pieces[::-1][np.unique(units[::-1], return_index=True)[1]])
    return np.searchsorted(first, borders, side="right"), len(last) - np.searchsorted(last, borders, "right")
