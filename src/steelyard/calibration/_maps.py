"""Maps from raw values to what people say, and how they are fitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from steelyard.calibration._collect import SIGNALS, Labelled, Signal
from steelyard.stats import Estimate, auroc, fit_logistic, smoothed_targets

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class IdentityMap:
    """The judge's number as it is: people's labels say that it is a probability already."""

    method: ClassVar[str] = "identity"

    def __call__(self, value: float) -> float:
        return value


@dataclass(frozen=True, slots=True)
class PlattMap:
    """1 / (1 + exp(-(slope value + offset))): two numbers, which few labels are enough for.

    Platt, Probabilistic outputs for support vector machines, 1999, with his targets
    (`steelyard.stats.smoothed_targets`).
    """

    slope: float
    """How steep it is; above 0, since a higher number never means a worse turn here."""
    offset: float
    method: ClassVar[str] = "platt"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.offset)) or self.slope < 0:
            raise ValueError("slope and offset must be finite, and the slope not negative")

    def __call__(self, value: float) -> float:
        # exp overflows beyond 709.
        return 1 / (1 + math.exp(-min(max(self.slope * value + self.offset, -700.0), 700.0)))

    @classmethod
    def fit(cls, values: _Array, good: npt.NDArray[np.bool_]) -> Self:
        """The most likely curve, by Newton's method; a flat one where it would fall."""
        return cls(*fit_logistic(values, smoothed_targets(good)))


@dataclass(frozen=True, slots=True)
class IsotonicMap:
    """Steps that only rise, joined by straight lines: any shape, for which there must be many labels.

    Pool adjacent violators (Ayer et al. 1955; for calibration Zadrozny & Elkan, KDD 2002). The lowest and the
    highest step keep a label's distance from 0 and 1, as (n+ + 1) / (n + 2) does.
    """

    values: tuple[float, ...]
    """The judge's numbers at the ends of the steps, rising."""
    chances: tuple[float, ...]
    """The probability at each, never falling."""
    method: ClassVar[str] = "isotonic"

    def __post_init__(self) -> None:
        values, chances = self.values, self.chances
        if not values or len(values) != len(chances) or not (_rises(values) and _rises(chances)):
            raise ValueError("values and chances must be as many, in 0..1, and never fall")

    def __call__(self, value: float) -> float:
        return float(np.interp(value, self.values, self.chances))

    @classmethod
    def fit(cls, values: _Array, good: npt.NDArray[np.bool_]) -> Self:
        """The rising steps with the least squared error."""
        steps: list[_Step] = []
        numbers, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        hits = np.bincount(places, good.astype(float))
        for number, count, hit in zip(numbers.tolist(), counts.tolist(), hits.tolist(), strict=True):
            steps.append(_Step(number, number, count, hit))
            while len(steps) > 1 and steps[-2].share >= steps[-1].share:
                last = steps.pop()
                steps[-1] = steps[-1].joined(last)
        # A step over a single number has one end.
        ends = [(end, step.kept) for step in steps for end in dict.fromkeys((step.low, step.high))]
        # Keeping a small step off 0 and 1 may put it below the one before.
        chances = np.maximum.accumulate([chance for _, chance in ends])
        return cls(tuple(end for end, _ in ends), tuple(float(chance) for chance in chances))


@dataclass(frozen=True, slots=True)
class _Step:
    low: float
    high: float
    count: int
    good: float

    @property
    def share(self) -> float:
        return self.good / self.count

    @property
    def kept(self) -> float:
        """The share, kept off 0 and 1."""
        edge = 1 / (self.count + 2)
        return min(max(self.share, edge), 1 - edge)

    def joined(self, other: _Step) -> _Step:
        return _Step(self.low, other.high, self.count + other.count, self.good + other.good)


def _rises(numbers: Sequence[float]) -> bool:
    inside = all(0 <= number <= 1 for number in numbers)
    return inside and all(one <= other for one, other in zip(numbers, numbers[1:], strict=False))


CalibrationMap = IdentityMap | PlattMap | IsotonicMap
"""From a judge's number in 0..1 to the probability, in 0..1, that people call the turn good."""
MAPS: Mapping[str, Any] = {kind.method: kind for kind in (IdentityMap, PlattMap, IsotonicMap)}
"""The kinds of map by their method's name."""


LEAST = 30
"""Labels below which nothing is calibrated."""
LEAST_OF_EACH = 8
"""Good ones and bad ones below which nothing is calibrated."""
_ISOTONIC = 200  # below, steps follow the noise of the labels; two parameters do not
_ISOTONIC_OF_EACH = 50  # of good and of bad labels; a rare kind has few steps of its own
# With eight labels of each kind, every fifth holds one of each at least.
_FOLDS = 5
_BINS = 10

_Flags = npt.NDArray[np.bool_]
_Fitter = Callable[[_Array, _Flags], CalibrationMap]


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Nothing was calibrated, and this is why."""

    cause: str
    """A stable word: `too_few_labels`, `one_class`, `few_of_one_class`, `no_relation`."""
    explanation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """A map, and what it is worth on labels that it was not made from."""

    map: CalibrationMap
    """From the judge's number to a probability; made from all labels."""
    signal: Signal
    n: int
    good: int
    area: Estimate
    """AUROC of the judge's number: how well it tells good turns from bad ones, calibrated or not."""
    error_before: float
    """Expected calibration error of the score as it stands."""
    error_after: float
    """That of the map, cross-validated: each fifth of the labels by a map made from the others."""
    squared_before: float
    """Mean squared distance of the score from the labels (Brier 1950)."""
    squared_after: float
    """That of the map, cross-validated."""


def fit(labelled: Sequence[Labelled]) -> Fit | Refusal:
    """Make a map out of labels.

    The candidates are the score as it is, and Platt's curve over the score and over the probability of its
    worst verdict; from 200 labels with 50 of each kind on also steps (isotonic). The one with the smallest
    cross-validated squared error is taken, and a simpler one if the difference is within a standard error
    (Breiman et al., Classification and regression trees, 1984, section 3.4.3).
    """
    good = np.array([pair.good for pair in labelled], bool)
    if (refusal := _refused(good)) is not None:
        return refusal
    values = np.array([pair.judged.value for pair in labelled])
    folds = _folds(good)
    best: _Candidate | None = None
    for signal in SIGNALS:
        numbers = [pair.judged.signal(signal) for pair in labelled]
        known = [number for number in numbers if number is not None]
        # Candidates are compared label by label, so each needs a number for all of them.
        if len(known) < len(numbers):
            continue
        data = np.array(known)
        for fitter in _candidates(good, plain=signal == "value"):
            predicted = _predicted(fitter, data, good, folds)
            candidate = _Candidate(signal, fitter, data, predicted, (predicted - good) ** 2)
            if best is None or candidate.is_clearly_better(best):
                best = candidate
    assert best is not None
    area = auroc(best.data.tolist(), good.tolist())
    if area.low <= 0.5:
        return Refusal(
            cause="no_relation",
            explanation=f"AUROC {area.value:.2f} ({area.low:.2f} to {area.high:.2f}): {len(good)} labels do "
            "not show that the judge tells good turns from bad ones; label more, or take another judge",
        )
    return Fit(
        map=best.fitter(best.data, good),
        signal=best.signal,
        n=len(good),
        good=int(good.sum()),
        area=area,
        error_before=spread_error(values, good),
        error_after=spread_error(best.predicted, good),
        squared_before=float(np.mean((values - good) ** 2)),
        squared_after=float(best.squared.mean()),
    )


def spread_error(chances: npt.ArrayLike, good: npt.ArrayLike) -> float:
    """Expected calibration error: mean distance of probability and share of good over tenths of the scale.

    Each tenth counts by how many turns it holds (Naeini, Cooper & Hauskrecht, AAAI 2015).
    """
    numbers, truth = np.asarray(chances, float), np.asarray(good, float)
    # 1 itself belongs to the last tenth.
    place = np.minimum((numbers * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(place, minlength=_BINS)
    gaps = np.bincount(place, numbers - truth, minlength=_BINS)
    return float(np.abs(gaps).sum() / counts.sum())


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A kind of map over one signal, and what it says of labels that it was not made from."""

    signal: Signal
    fitter: _Fitter
    data: _Array
    predicted: _Array
    squared: _Array

    def is_clearly_better(self, other: _Candidate) -> bool:
        gain = other.squared - self.squared
        return float(gain.mean()) > float(gain.std()) / math.sqrt(len(gain))


def _refused(good: _Flags) -> Refusal | None:
    count, many = len(good), int(good.sum())
    few, rare = min(many, count - many), "good" if many < count - many else "bad"
    if count < LEAST:
        cause = "too_few_labels"
        why = f"{count} labelled turns are too few; there must be {LEAST}, and {LEAST_OF_EACH} of each kind"
    elif few == 0:
        cause, common = "one_class", "bad" if rare == "good" else "good"
        why = f"all {count} labels say {common}: nothing shows what a {rare} turn looks like to this judge; "
        why += "label some"
    elif few < LEAST_OF_EACH:
        cause = "few_of_one_class"
        why = f"only {few} of {count} labels say {rare}; there must be {LEAST_OF_EACH}"
    else:
        return None
    return Refusal(cause=cause, explanation=why)


def _candidates(good: _Flags, *, plain: bool) -> list[_Fitter]:
    """The kinds of map that there are enough labels for, the simplest first."""
    found: list[_Fitter] = [lambda _values, _good: IdentityMap()] if plain else []
    found.append(PlattMap.fit)
    many = int(good.sum())
    if len(good) >= _ISOTONIC and min(many, len(good) - many) >= _ISOTONIC_OF_EACH:
        found.append(IsotonicMap.fit)
    return found


def _folds(good: _Flags) -> npt.NDArray[np.intp]:
    """Which fifth each label is in; good and bad ones are spread evenly, the same way each time."""
    folds = np.zeros(len(good), np.intp)
    shuffle = np.random.default_rng(0)
    for kind in (True, False):
        members = shuffle.permutation(np.flatnonzero(good == kind))
        folds[members] = np.arange(len(members)) % _FOLDS
    return folds


def _predicted(fitter: _Fitter, data: _Array, good: _Flags, folds: npt.NDArray[np.intp]) -> _Array:
    found = np.empty_like(data)
    for fold in range(_FOLDS):
        out = folds == fold
        made = fitter(data[~out], good[~out])
        found[out] = [made(value) for value in data[out]]
    return found
