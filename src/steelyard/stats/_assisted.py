"""The mean of a dear judge's values, from the few turns it saw and the many that a cheap screen saw too.

The screen's value tells what the judge would have said, on average, whatever the screen is worth: a curve is
drawn through the turns that both saw. The mean of the judge's values is then moved by how much the turns that
it saw differ, on that curve, from all turns that the screen saw: the generalised regression estimator of
survey sampling (Cassel, Sarndal & Wretman, Biometrika 63, 1976; Sarndal, Swensson & Wretman 1992, chapter 6),
whose error is that of what the curve leaves unexplained. Probabilities are known, so that it is not biased if
the curve fits badly. Each turn's curve is drawn without the turns of its session (cross-fitting: Chernozhukov
et al., Econometrics Journal 21, 2018), and the curve counts by as much as makes the variance least (power
tuning: Angelopoulos, Duchi & Zrnic, PPI++, 2023). A screen that tells nothing counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from steelyard.stats._estimate import Estimate, Weighed
from steelyard.stats._ridge import fit_ridge, folds_of
from steelyard.stats._sample import Sample, unit_codes

_Array = npt.NDArray[np.float64]
_Codes = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]
_FOLDS = 5
_LEAST = 20
"""Turns that both have seen, below which no curve is drawn."""
_PRIOR = 4.0
"""As many turns speak for a screen that tells nothing: what few residuals leave is smaller by luck."""
_END = 1e-3
"""Values this near 0 or 1 are a kind of their own: all claims hold, or none."""


@dataclass(frozen=True, kw_only=True)
class AssistedSample(Sample):
    """Turns that a screen saw, some of which the judge saw as well.

    `values` and `weights` are made so that any weighted mean of theirs is the estimate for those turns; what
    it is worth is said by `estimate`, which counts the turns that the judge saw.
    """

    judged: _Array
    """The judge's value in 0..1; NaN where it has none."""
    applies: _Array
    """1 where the judge found the metric to apply, 0 where not; NaN where it was not asked, or failed."""
    dear: _Array
    """1 / the probability with which the judge was asked; 0 where it said nothing."""
    curve: _Array
    """What the judge would say, by what the screen said; drawn without the turn's session."""
    share: _Array
    """The probability that the metric applies, by what the screen said."""

    def part(self, where: _Mask | npt.NDArray[np.intp]) -> AssistedSample:
        """Some of the turns."""
        units = None if self.units is None else self.units[where]
        return _assisted(
            self.judged[where], self.applies[where], self.dear[where], self.weights[where],
            self.curve[where], self.share[where], units,
        )  # fmt: skip

    @property
    def counted(self) -> _Array:
        """1 for turns that the judge gave a value, 0 for the others."""
        return (self.dear * np.nan_to_num(self.applies) > 0).astype(float)

    @cached_property
    def alone(self) -> Sample:
        """The turns that the judge gave a value, by themselves."""
        seen = self.counted > 0
        units = None if self.units is None else self.units[seen]
        return Sample(values=self.judged[seen], weights=self.dear[seen], units=units)

    @cached_property
    def mean(self) -> float:
        """The mean of the judge's values over all turns, between 0 and 1; 0 of none that it saw."""
        return self._moved.mean

    @property
    def least(self) -> float:
        """The smallest probability with which a turn was judged; 1 of nothing."""
        return self.alone.least

    @cached_property
    def _moved(self) -> _Moved:
        return _moved(self)

    @cached_property
    def weighed(self) -> Weighed:
        """What the interval is made of: the judged turns alone, less what the curve explains of them."""
        plain, ratio = self.alone.weighed, self._moved.ratio
        if ratio >= 1:
            return plain
        return replace(
            plain,
            mean=self.mean,
            square=plain.square * ratio,
            spread=plain.spread * ratio,
            clustered=plain.clustered * ratio,
            even=False,
        )

    @property
    def worth(self) -> float:
        """As many turns, judged at random without a screen, would give an interval as narrow."""
        found, alone = self.weighed, self.alone.weighed
        variance = found.spread / found.weight**2
        return alone.second / variance if variance > 0 else float(alone.n)

    def estimate(self, *, level: float = 0.95, floor: float | None = None) -> Estimate | None:
        """The mean with its interval, never wider than without the screen; None if nothing was judged."""
        plain = self.alone.estimate(level=level, floor=floor)
        if plain is None or self._moved.ratio >= 1:
            return plain
        found = self.weighed.estimate(level=level, floor=floor)
        return found if found.margin < plain.margin else plain


@dataclass(frozen=True)
class _Moved:
    """What the curve makes of the judged turns' mean."""

    mean: float
    values: _Array = field(repr=False)
    ratio: float


def assisted_sample(
    said: npt.ArrayLike,
    screened: npt.ArrayLike,
    judged: npt.ArrayLike,
    inclusion: npt.ArrayLike,
    *,
    makes: Sequence[Hashable] | None = None,
    sessions: Sequence[Hashable] | None = None,
) -> AssistedSample:
    """Turns that a screen or a judge saw, as a sample of the judge's values.

    Args:
        said: What the screen said in 0..1; NaN where it said nothing: such turns stand for their like by
            what the judge said alone.
        screened: The probability with which the screen saw each; of no account where it said nothing.
        judged: The judge's value in 0..1; NaN where it has none.
        inclusion: The probability with which the judge saw each; NaN where it did not, or failed. Where it
            did and there is no value, the metric does not apply.
        makes: How the screen's value was made: a curve is drawn for each, since one screen's values mean
            something else than another's. All alike if None.
        sessions: The session of each turn (see `weighted_mean`); independent turns if None.

    Raises:
        ValueError: If the arguments are not of one length.
    """
    columns = [np.array(part, float) for part in (said, screened, judged, inclusion)]
    x, screened_with, values, asked = columns
    units = None if sessions is None else unit_codes(sessions)
    kinds = np.zeros(len(x), np.int64) if makes is None else unit_codes([str(one) or "-" for one in makes])
    if len({len(one) for one in (*columns, kinds, kinds if units is None else units)}) > 1:
        raise ValueError("all that is said of turns must be of one length")
    values = np.clip(values, 0.0, 1.0)
    dear = np.where(np.isnan(asked), 0.0, 1 / asked)
    applies = np.where(dear > 0, np.isfinite(values).astype(float), np.nan)
    weights = np.where(np.isnan(x), dear, 1 / screened_with)
    kinds = np.where(np.isnan(x), -1, kinds)
    # What neither has seen stands for nothing.
    kept = weights > 0
    parts = [one[kept] for one in (np.clip(np.nan_to_num(x), 0.0, 1.0), values, applies, dear)]
    units = None if units is None else units[kept]
    said_by, judged_by, applies, dear = parts
    curve, share = _fitted(said_by, judged_by, applies, dear, kinds[kept], units)
    return _assisted(judged_by, applies, dear, weights[kept], curve, share, units)


def _assisted(
    judged: _Array, applies: _Array, dear: _Array, weights: _Array, curve: _Array, share: _Array,
    units: _Codes | None,
) -> AssistedSample:  # fmt: skip
    bare = AssistedSample(
        values=np.zeros(len(judged)), weights=weights, units=units, judged=judged, applies=applies, dear=dear,
        curve=curve, share=share,
    )  # fmt: skip
    return replace(bare, values=bare._moved.values)


def _moved(sample: AssistedSample) -> _Moved:
    """The estimate, the turns' values that add up to it, and its variance beside that without a screen."""
    alone = sample.alone
    if not len(alone):
        return _Moved(0.0, np.zeros(len(sample.judged)), 1.0)
    dear, weights = sample.dear, sample.weights
    applies = np.nan_to_num(sample.applies)
    first, all_dear, all_weight = alone.mean, float(dear.sum()), float(weights.sum())
    rate = float(dear @ applies) / all_dear
    away = applies * (np.nan_to_num(sample.judged) - first)
    drawn = sample.share * (sample.curve - first)
    seen, judged = float(weights @ drawn) / all_weight, float(dear @ drawn) / all_dear
    plain = dear / all_dear * away
    gain = weights / all_weight * (drawn - seen) - dear / all_dear * (drawn - judged)
    plain_by, gain_by = Sample.totals(sample, plain), Sample.totals(sample, gain)
    size, power = float(plain_by @ plain_by), float(gain_by @ gain_by)
    trust = min(max(-float(plain_by @ gain_by) / power, 0.0), 1.0) if power > 0 else 0.0
    left = plain_by + trust * gain_by
    ratio = float(left @ left) / size if size > 0 else 1.0
    count = float(np.count_nonzero(sample.counted))
    ratio = (count * ratio + _PRIOR) / (count + _PRIOR)
    moved = first + trust * (seen - judged) / rate
    mean = min(max(moved, 0.0), 1.0) if ratio < 1 else first
    values = mean + (plain + trust * gain) / rate * all_weight / np.where(weights > 0, weights, 1.0)
    return _Moved(mean, values, ratio)


def _fitted(
    x: _Array, judged: _Array, applies: _Array, dear: _Array, codes: _Codes, units: _Codes | None
) -> tuple[_Array, _Array]:
    """By what the screen said: the judge's value expected where the metric applies, and whether it does.

    Of turns of which the screen said nothing it is what the judge said.
    """
    valid = (dear > 0) & (np.nan_to_num(applies) > 0)
    usual = float(dear[valid] @ judged[valid] / dear[valid].sum()) if valid.any() else 0.0
    rate = float(dear @ np.nan_to_num(applies) / dear.sum()) if dear.any() else 1.0
    curve, share = np.full(len(x), usual), np.full(len(x), rate)
    unknown = codes < 0
    curve[unknown] = np.where(valid, np.nan_to_num(judged), usual)[unknown]
    share[unknown] = np.nan_to_num(applies)[unknown]
    folds = folds_of(range(len(x)) if units is None else units.tolist(), _FOLDS)
    for code in np.unique(codes[codes >= 0]):
        mine = codes == code
        _draw(curve, x, judged, dear, mine, mine & valid, folds)
        if rate < 1:
            _draw(share, x, np.nan_to_num(applies), dear, mine, mine & (dear > 0), folds)
    return curve, np.clip(share, 0.0, 1.0)


def _draw(
    found: _Array, x: _Array, target: _Array, dear: _Array, mine: _Mask, seen: _Mask, folds: _Codes
) -> None:
    """Fill in the curve for some turns, each without the fold that it is in."""
    if int(seen.sum()) < _LEAST:
        return
    for fold in range(_FOLDS):
        here, others = mine & (folds == fold), seen & (folds != fold)
        if here.any() and int(others.sum()) >= _LEAST // 2:
            found[here] = np.clip(_ridge(x[others], target[others], dear[others])(x[here]), 0.0, 1.0)


def _ridge(x: _Array, y: _Array, weights: _Array) -> Callable[[_Array], _Array]:
    centre, slopes, level = fit_ridge(_columns(x), y, weights, 1.0)

    def curve(given: _Array) -> _Array:
        found: _Array = level + (_columns(given) - centre) @ slopes
        return found

    return curve


def _columns(x: _Array) -> _Array:
    return np.column_stack([x, x * x, x >= 1 - _END, x <= _END]).astype(float)
