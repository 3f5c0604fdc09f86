"""Looking at scores as they arrive: intervals and an alarm that stay honest however often one looks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

_MOST_BET = 0.5  # more would risk all evidence on one score
# Small bets find small falls, large ones find deep falls sooner; which it will be is not known.
_BETS = (0.15, 0.4, 0.8)
_HORIZON = 200.0  # scores after which half of the stake has been put on a fall


class ConfidenceSequence:
    """An interval for a mean that holds at every moment at once, with probability `level`.

    The empirical-Bernstein sequence of Waudby-Smith & Ramdas (JRSS B 86, 2024, theorem 2), in the form for
    inverse-probability weights (Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro 2022, section 3). With a =
    smallest_inclusion / inclusion in (0, 1], Y = a (X - m) has mean 0 at the true mean m, and lies in -1..1;
    then prod exp(l Y - g(l) Y^2), g(l) = -log(1 - l) - l, is a supermartingale for any l chosen before X is
    seen, and m stays in the sequence until it exceeds 2 / alpha (Ville). The bounds are roots of a quadratic.
    """

    def __init__(self, *, level: float = 0.95, smallest_inclusion: float = 1.0) -> None:
        """Start before the first score.

        Args:
            level: Nominal coverage, over all moments at once.
            smallest_inclusion: The lowest probability with which any turn can be picked; must be known
                beforehand, and the lower, the wider.
        """
        self.n = 0
        self.low = 0.0
        self.high = 1.0
        self._log = math.log(2 / (1 - level))
        self._smallest = smallest_inclusion
        # Prior: one turn of mean 1/2 and variance 1/4 (their eq. 15).
        self._weight = self._value = self._variance = 0.0
        self._bet = self._bet_value = 0.0
        self._penalty = [0.0, 0.0, 0.0]

    @property
    def mean(self) -> float:
        """The weighted mean so far; 1/2 before the first score."""
        return self._value / self._weight if self._weight else 0.5

    def add(self, value: float, inclusion: float = 1.0) -> tuple[float, float]:
        """Take a score in 0..1 into account.

        Returns:
            The interval now; it never widens.

        Raises:
            ValueError: If the inclusion probability is below the smallest one.
        """
        if inclusion < self._smallest * (1 - 1e-9):
            raise ValueError(f"inclusion {inclusion!r} is below the smallest one, {self._smallest!r}")
        # Rounding is let through above, and must not make the share more than 1.
        share = min(self._smallest / inclusion, 1.0)
        bet = self._next_bet()
        penalty = (-math.log1p(-bet) - bet) * share * share
        self._bet += bet * share
        self._bet_value += bet * share * value
        for power in range(3):
            self._penalty[power] += penalty * value**power
        self.n += 1
        self._weight += share
        self._value += share * value
        self._variance += share * share * (value - self.mean) ** 2
        self.low = max(self.low, self._bound(self._bet_value, self._penalty))
        c0, c1, c2 = self._penalty
        mirrored = (c0, c0 - c1, c0 - 2 * c1 + c2)
        self.high = min(self.high, 1 - self._bound(self._bet - self._bet_value, mirrored))
        return self.low, self.high

    def _next_bet(self) -> float:
        """Their plug-in (eq. 15): as large as the variance so far allows."""
        variance = (0.25 * self._first_share() + self._variance) / (self.n + 1)
        looks = self.n + 1
        return min(math.sqrt(2 * self._log / (variance * looks * math.log1p(looks))), _MOST_BET)

    def _first_share(self) -> float:
        return self._weight / self.n if self.n else 1.0

    def _bound(self, bet_value: float, penalty: Sequence[float]) -> float:
        """The lowest mean that is not rejected: c0 m^2 - (2 c1 - b) m - (bv - c2 - log) = 0, in 0..1."""
        c0, c1, c2 = penalty
        excess = bet_value - c2 - self._log
        if excess <= 0:
            return 0.0
        slope = self._bet - 2 * c1
        return min(2 * excess / (slope + math.sqrt(slope * slope + 4 * c0 * excess)), 1.0)


class FallAlarm:
    """Says when scores have fallen below a level, with at most `alpha` false alarms however often one looks.

    A bet against "the mean is at least `target`": each score multiplies the stake by 1 - l a (X - target),
    with a as in `ConfidenceSequence`; on average this does not grow while the mean is on target (the capital
    process of Waudby-Smith & Ramdas 2024, section 4). Bets of three sizes are opened at every score, sharing
    a starting stake of 1 by a prior over when a fall might begin, so that good scores of the past do not hide
    it (after Shin, Ramdas & Rinaldo, E-detectors, 2023). The alarm goes off when the sum reaches 1 / alpha,
    which by Ville's inequality happens on a healthy stream with a probability of at most alpha, ever.
    """

    def __init__(self, *, target: float, alpha: float = 0.05, smallest_inclusion: float = 1.0) -> None:
        """Start before the first score.

        Args:
            target: The mean that is promised, in (0, 1]; a mean below it is a fall.
            alpha: Probability of ever giving a false alarm.
            smallest_inclusion: The lowest probability with which any turn can be picked.
        """
        self.n = 0
        self.raised_at: int | None = None
        """After how many scores the alarm went off; None while it has not."""
        self._target = target
        self._limit = 1 / alpha
        self._smallest = smallest_inclusion
        self._stakes = [0.0] * len(_BETS)

    @property
    def stakes(self) -> tuple[float, ...]:
        """What has become of the bets so far; with `n`, all that `resume` needs."""
        return tuple(self._stakes)

    def resume(self, n: int, stakes: Sequence[float]) -> None:
        """Go on where another alarm with the same options stopped, in an earlier process say.

        Raises:
            ValueError: If these cannot be what such an alarm had.
        """
        known = all(math.isfinite(stake) and stake >= 0 for stake in stakes)
        if n < 0 or len(stakes) != len(_BETS) or not known:
            raise ValueError("this is not the state of a fall alarm")
        self.n = n
        self._stakes = [float(stake) for stake in stakes]

    @property
    def evidence(self) -> float:
        """What a starting stake of 1 has become; at `1 / alpha` the alarm goes off."""
        return sum(self._stakes) / len(_BETS) + _kept(self.n)

    def add(self, value: float, inclusion: float = 1.0) -> bool:
        """Take a score in 0..1 into account; returns whether the alarm has gone off, now or before."""
        if inclusion < self._smallest * (1 - 1e-9):
            raise ValueError(f"inclusion {inclusion!r} is below the smallest one, {self._smallest!r}")
        excess = (value - self._target) * min(self._smallest / inclusion, 1.0)
        opened = _kept(self.n) - _kept(self.n + 1)
        self._stakes = [
            (stake + opened) * (1 - bet * excess) for stake, bet in zip(self._stakes, _BETS, strict=True)
        ]
        self.n += 1
        if self.raised_at is None and self.evidence >= self._limit:
            self.raised_at = self.n
        return self.raised_at is not None


def _kept(n: int) -> float:
    """The share of the stake not yet put on a fall, after n scores."""
    return 1 / (1 + n / _HORIZON)


def ewma(
    values: Iterable[float], inclusion: Iterable[float] | None = None, *, half_life: float = 50.0
) -> npt.NDArray[np.float64]:
    """The exponentially weighted moving average (Roberts, Technometrics 1, 1959), for the eye.

    Args:
        values: In order of time.
        inclusion: The probability with which each was picked; 1 where None.
        half_life: After how many values a value counts half.

    Returns:
        One average for each value.
    """
    data = np.fromiter(values, float)
    weights = np.ones_like(data) if inclusion is None else 1 / np.fromiter(inclusion, float)
    decay = 0.5 ** (1 / half_life)
    averages = np.empty_like(data)
    total = weight = 0.0
    for index, (value, own) in enumerate(zip(data.tolist(), weights.tolist(), strict=True)):
        total = decay * total + own * value
        weight = decay * weight + own
        averages[index] = total / weight
    return averages
