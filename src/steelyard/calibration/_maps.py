"""Maps from a judge's number to a probability: a logistic curve, rising steps, or the number itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from steelyard.stats import fit_logistic, smoothed_targets

_Array = npt.NDArray[np.float64]


class CalibrationMap(Protocol):
    """From a judge's number in 0..1 to the probability, in 0..1, that people call the turn good."""

    method: ClassVar[str]
    """`identity`, `platt` or `isotonic`."""

    def __call__(self, value: float) -> float:
        """The probability."""

    def to_dict(self) -> dict[str, Any]:
        """Its numbers, as JSON values."""


@dataclass(frozen=True, slots=True)
class IdentityMap:
    """The judge's number as it is: people's labels say that it is a probability already."""

    method: ClassVar[str] = "identity"

    def __call__(self, value: float) -> float:
        """The number itself."""
        return value

    def to_dict(self) -> dict[str, Any]:
        """It has no numbers."""
        return {}

    @classmethod
    def from_dict(cls, _: Mapping[str, Any]) -> Self:
        """The only one there is."""
        return cls()


@dataclass(frozen=True, slots=True)
class PlattMap:
    """1 / (1 + exp(-(slope value + offset))): two numbers, which few labels are enough for.

    Platt, Probabilistic outputs for support vector machines, 1999, with his targets
    (`steelyard.stats.smoothed_targets`).
    """

    slope: float
    """How steep it is; above 0, since a higher number never means a worse turn here."""
    offset: float
    """Where it stands."""
    method: ClassVar[str] = "platt"

    def __call__(self, value: float) -> float:
        """The probability."""
        # exp overflows beyond 709.
        return 1 / (1 + math.exp(-min(max(self.slope * value + self.offset, -700.0), 700.0)))

    def to_dict(self) -> dict[str, Any]:
        """Slope and offset."""
        return {"slope": self.slope, "offset": self.offset}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the two numbers.

        Raises:
            ValueError: If one is not finite, or the curve falls.
        """
        slope, offset = float(data["slope"]), float(data["offset"])
        if not (math.isfinite(slope) and math.isfinite(offset)) or slope < 0:
            raise ValueError("slope and offset must be finite, and the slope not negative")
        return cls(slope, offset)

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

    def __call__(self, value: float) -> float:
        """The probability."""
        return float(np.interp(value, self.values, self.chances))

    def to_dict(self) -> dict[str, Any]:
        """The ends of the steps."""
        return {"values": list(self.values), "chances": list(self.chances)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the steps.

        Raises:
            ValueError: If they are not numbers in 0..1 that only rise.
        """
        values, chances = (tuple(float(number) for number in data[name]) for name in ("values", "chances"))
        if not values or len(values) != len(chances) or not (_rises(values) and _rises(chances)):
            raise ValueError("values and chances must be as many, in 0..1, and never fall")
        return cls(values, chances)

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


MAPS: Mapping[str, Any] = {kind.method: kind for kind in (IdentityMap, PlattMap, IsotonicMap)}
"""The kinds of map by their method's name."""
