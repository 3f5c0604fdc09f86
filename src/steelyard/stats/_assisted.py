"""The mean of a few dear values with the help of many cheap ones: a judge and a screen, people and a judge.

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

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from steelyard.stats._estimate import Estimate, Weighed, t_quantile, wilson
from steelyard.stats._fits import fit_logistic, fit_ridge, folds_of, smoothed_targets
from steelyard.stats._sample import Sample, unit_codes

_Array = npt.NDArray[np.float64]
_Codes = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]
_FOLDS = 5
_LEAST = 20
"""Turns that both have seen, below which no curve is drawn."""
_PRIOR = 4.0
"""As many turns speak for a screen that tells nothing: what few residuals leave is smaller by luck."""
_DOUBT = 0.5
"""What is added to the good and to the bad labels before the curve is drawn (Krichevsky & Trofimov 1981)."""
_LABEL_PRIOR = 2.0  # pseudo-observations: with few labels a residual variance of nearly zero is luck
_LEAST_PRIOR = 0.1
"""How many labels speak for a judge that tells nothing, if all are 0 or 1, and at least.

Found by simulation (benchmarks/calibration.py): without it, 50 labels of which five say bad cover .93 to .95.
"""
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
    prior = max(_LABEL_PRIOR * ends, _LEAST_PRIOR)
    if largest < 1e-12:
        return 1.0
    size = 1 / float(weights @ weights)
    found = float((weights * weights) @ (left - weights @ left) ** 2) * size / largest
    return (size * found + prior) / (size + prior)


def _interval(value: float, size: float, share: float, spread: float, quantile: float) -> tuple[float, float]:
    largest = value * (1 - value)
    trials = size / share if largest < 1e-12 else largest / (share * largest / size + spread)
    return wilson(value, trials, quantile)
