"""Running sums over a sample whose members were picked with unequal, known probabilities; its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.stats._estimate import Estimate, Weighed

_Array = npt.NDArray[np.float64]


@dataclass(slots=True)
class Moments:
    """Running sums over values in 0..1, each weighted by 1 / its inclusion probability."""

    n: int = 0
    ends: int = 0
    weight: float = 0.0
    value: float = 0.0
    value_value: float = 0.0
    value_value_value: float = 0.0
    square: float = 0.0
    square_value: float = 0.0
    square_value_value: float = 0.0
    fourth: float = 0.0
    least: float = 1.0

    def add(self, value: float, inclusion: float = 1.0) -> None:
        """Take a value into account."""
        weight = 1 / inclusion
        self.n += 1
        self.ends += value <= 0 or value >= 1
        self.weight += weight
        self.value += weight * value
        self.value_value += weight * value * value
        self.value_value_value += weight * value * value * value
        self.square += weight * weight
        self.square_value += weight * weight * value
        self.square_value_value += weight * weight * value * value
        self.fourth += weight**4
        self.least = min(self.least, inclusion)

    def add_all(self, values: _Array, inclusion: _Array) -> None:
        """Take many values into account at once."""
        if not len(values):
            return
        weights = 1 / inclusion
        squares = weights * weights
        weighted = weights * values
        self.n += len(values)
        self.ends += int(np.count_nonzero((values <= 0) | (values >= 1)))
        self.weight += float(weights.sum())
        self.value += float(weighted.sum())
        self.value_value += float(weighted @ values)
        self.value_value_value += float(weighted @ (values * values))
        self.square += float(squares.sum())
        self.square_value += float(squares @ values)
        self.square_value_value += float(squares @ (values * values))
        self.fourth += float(squares @ squares)
        self.least = min(self.least, float(inclusion.min()))

    def merge(self, other: Moments) -> None:
        """Take the values of other sums into account."""
        least = min(self.least, other.least)
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.least = least

    @property
    def mean(self) -> float | None:
        """The Hajek mean; None of nothing."""
        return self.value / self.weight if self.n else None

    @property
    def effective_n(self) -> float:
        """Kish's effective sample size (Survey Sampling, 1965): (sum w)^2 / sum w^2."""
        return self.weight * self.weight / self.square if self.n else 0.0

    def estimate(
        self, *, level: float = 0.95, floor: float | None = None, design_effect: float = 1.0
    ) -> Estimate | None:
        """The Hajek mean with its interval; None of nothing. See `weighted_mean`.

        Args:
            level: Nominal coverage.
            floor: The lowest probability with which any turn could have been picked.
            design_effect: How many times the variance is what it would be if turns were independent.
        """
        if not self.n:
            return None
        mean = min(max(self.value / self.weight, 0.0), 1.0)
        squares = self.square_value_value - 2 * mean * self.square_value + mean * mean * self.square
        spread = max(squares, 0.0)
        second = max(self.value_value / self.weight - mean * mean, 0.0)
        third = self.value_value_value / self.weight - mean * (3 * self.value_value / self.weight)
        third += 2 * mean**3
        freedom = max(self.square**2 / self.fourth / design_effect - 1, 0.0)
        return Weighed(
            n=self.n,
            weight=self.weight,
            square=self.square,
            mean=mean,
            spread=spread,
            second=second,
            third=third,
            ends=self.ends / self.n,
            even=self.square * self.n <= self.weight**2 * (1 + 1e-9),
            clustered=spread * design_effect * (freedom + 1) / max(freedom, 1.0),
            freedom=freedom,
            alike=design_effect,
            units=None if design_effect == 1 else round(self.n / design_effect),
            least=self.least,
        ).estimate(level=level, floor=floor)
