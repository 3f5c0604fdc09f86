"""Looking at scores as they arrive: intervals and an alarm that stay honest however often one looks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from steelyard.stats._open_units import LONGEST, remember, unit_key

_MOST_USUAL = 0.15
_MOST_BET = 0.5  # more would risk all evidence on one score
# Small bets find small falls, large ones find deep falls sooner; which it will be is not known, nor how far
# turns of a session are alike: the more they are, the smaller the best bet.
_BETS = np.array([0.02, 0.06, 0.15, 0.4, 0.8])
_PARTS = _BETS / _BETS.sum()
"""Of the stake: a small bet grows slowly, so that a smaller part delays it by a smaller share of its time."""
_HORIZON = 4_000.0  # scores after which half of the stake has been put on a fall
_MOST_LOST = 0.9
"""No session may cost a bet more than this share of what it has become."""
_NARROWEST = 0.05  # a target nearer to 1 would allow bets without end


class _Sum(NamedTuple):
    """What a session has said so far."""

    turns: int = 0
    most: float = 0.0
    """What `total` would be if all turns were perfect."""
    total: float = 0.0
    """The sum of share times what a value is above the target."""
    doubt: float = 0.0
    """The sum of share times doubt."""
    share: float = 0.0

    def factor(self, bets: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What it makes of a stake, for bets of some sizes."""
        let_off = np.minimum(bets * self.doubt, FallAlarm.most_doubt * self.share)
        return 1 - bets * (self.total + let_off)


class ConfidenceSequence:
    """An interval for a mean that holds at every moment at once, with probability `level`.

    The empirical-Bernstein sequence of Waudby-Smith & Ramdas (JRSS B 86, 2024, theorem 2), in the form for
    inverse-probability weights (Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro 2022, section 3). With a =
    smallest_inclusion / inclusion in (0, 1], Y = sum of a (X - m) over the turns of a session has mean 0 at
    the true mean m, and is at least -b, b = sum of a; then prod exp(l Y - g Y^2), g = (-log(1 - l b) - l b) /
    b^2, is a supermartingale for any l chosen before the session is seen (Fan, Grama & Liu 2015), and m stays
    in the sequence until it exceeds 2 / alpha (Ville). The bounds are roots of a quadratic. Sessions may be
    interleaved, see `FallAlarm`; of a session as many turns count as its l allows for.
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
        self._units = 0
        self._open: dict[str, _Unit] = {}
        self._bet = self._bet_value = 0.0
        self._penalty = [0.0, 0.0, 0.0]

    @property
    def mean(self) -> float:
        """The weighted mean so far; 1/2 before the first score."""
        return self._value / self._weight if self._weight else 0.5

    def add(self, value: float, inclusion: float = 1.0, *, session: Hashable = None) -> tuple[float, float]:
        """Take a score in 0..1 into account.

        Args:
            value: The score.
            inclusion: The probability with which its turn was picked.
            session: The session of the turn, or its user; None or empty for a turn of its own.

        Returns:
            The interval now; it never widens.

        Raises:
            ValueError: If the inclusion probability is below the smallest one.
        """
        share = _share(inclusion, self._smallest)
        key = unit_key(session)
        before = None if key is None else self._open.get(key)
        if before is None or before.turns >= LONGEST:
            before = _Unit(bet=self._next_bet())
            self._units += 1
        self.n += 1
        self._weight += share
        self._value += share * value
        after = before.with_turn(share, value, counts=before.bet * (before.weight + share) <= _MOST_BET)
        if key is not None:
            remember(self._open, key, after)
        self._variance += after.square(self.mean) - before.square(self.mean)
        self._replace(before, after)
        self.low = max(self.low, self._bound(self._bet_value, self._penalty))
        c0, c1, c2 = self._penalty
        mirrored = (c0, c0 - c1, c0 - 2 * c1 + c2)
        self.high = min(self.high, 1 - self._bound(self._bet - self._bet_value, mirrored))
        return self.low, self.high

    def _replace(self, before: _Unit, after: _Unit) -> None:
        """Put what a session says now in the place of what it said before its last turn."""
        self._bet += after.bet * (after.weight - before.weight)
        self._bet_value += after.bet * (after.value - before.value)
        for unit, sign in ((before, -1), (after, 1)):
            penalty = sign * unit.penalty
            self._penalty[0] += penalty * unit.weight**2
            self._penalty[1] += penalty * unit.weight * unit.value
            self._penalty[2] += penalty * unit.value**2

    def _next_bet(self) -> float:
        """Their plug-in (eq. 15): as large as the variance of sessions so far allows."""
        looks = self._units + 1
        first = self._weight / self.n if self.n else 1.0
        variance = (0.25 * first + self._variance) / looks
        return min(math.sqrt(2 * self._log / (variance * looks * math.log1p(looks))), _MOST_BET)

    def _bound(self, bet_value: float, penalty: Sequence[float]) -> float:
        """The lowest mean that is not rejected: c0 m^2 - (2 c1 - b) m - (bv - c2 - log) = 0, in 0..1."""
        c0, c1, c2 = penalty
        excess = bet_value - c2 - self._log
        if excess <= 0:
            return 0.0
        slope = self._bet - 2 * c1
        return min(2 * excess / (slope + math.sqrt(slope * slope + 4 * c0 * excess)), 1.0)


@dataclass(frozen=True, slots=True)
class _Unit:
    """What a session has said so far."""

    bet: float
    turns: int = 0
    weight: float = 0.0
    value: float = 0.0

    def with_turn(self, share: float, value: float, *, counts: bool) -> _Unit:
        if not counts:
            return _Unit(self.bet, self.turns + 1, self.weight, self.value)
        return _Unit(self.bet, self.turns + 1, self.weight + share, self.value + share * value)

    def square(self, mean: float) -> float:
        return (self.value - mean * self.weight) ** 2

    @property
    def penalty(self) -> float:
        largest = max(self.weight, 1.0)
        return (-math.log1p(-self.bet * largest) - self.bet * largest) / largest**2


@dataclass(kw_only=True)
class FallAlarm:
    """Says when scores have fallen below a level, with at most `alpha` false alarms however often one looks.

    A bet against "the mean is at least `target`": each session multiplies the stake by 1 - l S, S being the
    sum of a (X - target) over its turns, with a as in `ConfidenceSequence`; on average this does not grow
    while the mean is on target, however alike turns of a session are (the capital process of Waudby-Smith &
    Ramdas 2024, section 4). A session's next turn replaces its factor, so that sessions may be interleaved
    and nothing waits for their end: as long as turns of a session are alike, not unlike, what an open session
    has said so far is on average no more than what it will have said. Bets of five sizes are opened at every
    score, sharing a starting stake of 1 in proportion to their sizes and by a prior over when a fall might
    begin, so that good scores of the past do not hide it (after Shin, Ramdas & Rinaldo, E-detectors, 2023).
    The alarm goes off when the sum reaches 1 / alpha, which by Ville's inequality happens on a healthy stream
    with a probability of at most alpha, ever. `benchmarks/sessions.py` measures it.

    Where nobody knows sessions, a factor counts by its root: evidence is worth as much less as neighbours are
    alike, as far as is known then (`Neighbours`).

    Of a session, a bet counts as many turns as it could pay for if all were perfect. After a hundred turns a
    session counts as another one, as it does if 500 others came since its last turn: one session for
    all turns is taken for sessions of a hundred turns.
    """

    most_doubt: ClassVar[float] = 0.017
    """No bet is let off more (see `add`): nearly the mean of the worse half of a wave of .03."""

    target: float
    """The mean that is promised, in (0, 1]; a mean below it is a fall. It may be changed before any score."""
    alpha: float = 0.05
    """Probability of ever giving a false alarm."""
    smallest_inclusion: float = 1.0
    """The lowest probability with which any turn can be picked; it may be lowered before any score."""
    n: int = 0
    """Scores so far."""
    raised_at: int | None = None
    """After how many scores the alarm went off; None while it has not."""
    evidence: float = 1.0
    """What a starting stake of 1 has become; at `1 / alpha` the alarm goes off."""
    stakes: list[float] = field(default_factory=lambda: [0.0] * len(_BETS))
    """What bets of each size have become."""
    weights: tuple[float, float] = (0.0, 0.0)
    """Sums of 1 / inclusion and of its square."""
    open: dict[str, _Sum] = field(default_factory=dict)
    """What sessions under way have said, by a short name of each."""

    def add(
        self,
        value: float,
        inclusion: float = 1.0,
        *,
        session: Hashable = None,
        usual: float = 0.0,
        doubt: float = 0.0,
        design_effect: float = 1.0,
    ) -> bool:
        """Take a score in 0..1 into account; returns whether the alarm has gone off, now or before.

        Args:
            value: The score.
            inclusion: The probability with which its turn was picked.
            session: The session of the turn, or its user; None or empty for a turn of its own.
            usual: How far the mean usually is above the target's, -.15 to .15, at the time of this turn.
            doubt: By how much below that the mean may be then without a fall, for a bet of 1: what is usual
                is not known exactly, and the larger a bet, the more such an error would win it; .017 at most.
            design_effect: If nobody knows its session: how many times the variance of a mean of such turns is
                what it would be if they were independent, as far as is known now.

        Raises:
            ValueError: If the inclusion probability is below the smallest one.
        """
        share = _share(inclusion, self.smallest_inclusion)
        target = self.target + min(max(usual, -_MOST_USUAL), _MOST_USUAL)
        key = unit_key(session)
        seen = _Sum() if key is None else self.open.get(key, _Sum())
        seen = seen if seen.turns < LONGEST else _Sum()
        least = target - (self.most_doubt if doubt else 0.0)
        after = _Sum(
            seen.turns + 1,
            seen.most + share * max(1 - least, 0.0),
            seen.total + share * (value - target),
            seen.doubt + share * doubt,
            seen.share + share,
        )
        opened = _kept(self.n) - _kept(self.n + 1)
        sizes = self._bets(least)
        bets = np.where((sizes * after.most <= _MOST_LOST) | (not seen.turns), sizes, 0.0)
        factors = (after.factor(bets) / seen.factor(bets)) ** (1 / design_effect)
        stakes = (np.array(self.stakes) + opened) * factors
        self.stakes = stakes.tolist()
        self.weights = self.weights[0] + 1 / inclusion, self.weights[1] + 1 / inclusion**2
        if key is not None:
            remember(self.open, key, after)
        self.n += 1
        self.evidence = float(stakes @ _PARTS) + _kept(self.n)
        if self.raised_at is None and self.evidence >= 1 / self.alpha:
            self.raised_at = self.n
        return self.raised_at is not None

    def _bets(self, target: float) -> npt.NDArray[np.float64]:
        """The bets, as many times larger as earlier turns weighed less than the heaviest can.

        Under weights a, the bet that grows fastest is mean a / mean a^2 of the one under weights of 1. Turns
        before alone decide it: a turn's own weight tells what a screen thinks of its value.
        """
        weights, squares = self.weights
        typical = weights / squares if squares else self.smallest_inclusion
        larger = max(typical / self.smallest_inclusion, 1.0)
        return np.minimum(_BETS * larger, _MOST_LOST / max(1 - target, _NARROWEST))


def _share(inclusion: float, smallest: float) -> float:
    if inclusion < smallest * (1 - 1e-9):
        raise ValueError(f"inclusion {inclusion!r} is below the smallest one, {smallest!r}")
    # Rounding is let through above, and must not make the share more than 1.
    return min(smallest / inclusion, 1.0)


def _kept(n: int) -> float:
    """The share of the stake not yet put on a fall, after n scores."""
    return 1 / (1 + n / _HORIZON)


def ewma(
    values: Iterable[float], inclusion: Iterable[float] | None = None, *, half_life: float = 50.0
) -> npt.NDArray[np.float64]:
    """Roberts' average (Technometrics 1, 1959), for the eye: after `half_life` values a value counts half."""
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
