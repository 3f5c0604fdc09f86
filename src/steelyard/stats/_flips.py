"""Verdicts whose right answers are known: an alarm for the moment they begin to go wrong."""

from __future__ import annotations

import math
from collections import deque

from steelyard.stats._estimate import normal_quantile, wilson

_FLIPPED = (0.05, 0.1, 0.2, 0.5)
_LEAST_NOISE = 0.005  # no judge is held to fewer slips than one in 200
_MOST_NOISE = 0.25  # a judge that wavers more often is not one that a change can be seen in
_CONFIRMED = 0.002
"""Share of answers that chance may make wrong three times running: of 1 in 20 wrong ones, 1 in 8,000 is."""
_SETTLED = 100  # the latest answers do not count as noise yet: they may be the change
_CERTAINTY = 0.88
"""How sure it is to be that a judge wavers no more often than is allowed for.

Found by simulation (benchmarks/calibration.py): higher, and changes are found late; lower, and false alarms
pass `alpha`.
"""


def flip_probability(*, wrong: int, answers: int, wrong_before: int, before: int) -> float:
    """How likely so many wrong answers are, or more, if nothing has changed: for one look, at one moment.

    Fisher's exact test (1935), with half of the probability of just as many (mid-p; Lancaster, Journal of the
    American Statistical Association 56, 1961), which makes its level nearly what it says. It needs no guess
    of how often a judge wavers by chance: what it did before is the other half of the table.
    """
    if not (0 <= wrong <= answers and 0 <= wrong_before <= before):
        raise ValueError(f"wrong={wrong!r} of {answers!r} or {wrong_before!r} of {before!r} is out of range")
    total = wrong + wrong_before
    ways = math.comb(answers + before, total)

    def chance(count: int) -> float:
        return math.comb(answers, count) * math.comb(before, total - count) / ways

    return chance(wrong) / 2 + sum(chance(count) for count in range(wrong + 1, min(total, answers) + 1))


class _FlipAlarm:
    """Says when answers go wrong more often than is tolerated, with few false alarms however often one looks.

    For each of four shares of flipped answers, beyond those tolerated to be wrong, it keeps Shiryaev &
    Roberts' sum of likelihood ratios, S = (S + 1 / horizon) LR, which does not forget a fall that begins late
    behind a long good past. While at most the tolerated share is wrong, S - n / horizon cannot grow on
    average, so that S reaches 1 / alpha within `horizon` answers with a probability of at most alpha (Doob's
    inequality; Pollak, Annals of Statistics 15, 1987).
    """

    def __init__(self, tolerated: float, *, alpha: float, horizon: int) -> None:
        self.n = 0
        self.raised_at: int | None = None
        self._sums = [0.0] * len(_FLIPPED)
        self._opened = 1 / horizon
        self._limit = 1 / alpha
        self.tolerate(tolerated)

    def tolerate(self, share: float) -> None:
        self.tolerated = share
        rates = [share * (1 - flipped) + (1 - share) * flipped for flipped in _FLIPPED]
        # Likelihood ratios of a wrong and of a right answer, for each share of flipped ones.
        self._ratios = [rate / share for rate in rates], [(1 - rate) / (1 - share) for rate in rates]

    def add(self, right: bool) -> None:
        self.n += 1
        ratios = self._ratios[right]
        self._sums = [(sum_ + self._opened) * ratio for sum_, ratio in zip(self._sums, ratios, strict=True)]
        if self.raised_at is None and sum(self._sums) / len(self._sums) >= self._limit:
            self.raised_at = self.n


class ChangeAlarm:
    """Says when a judge that wavers by chance has changed, from probes that it used to answer rightly.

    Two alarms share `alpha`. One counts every wrong answer, against how often the judge wavers: the upper end
    of a one-sided interval (Wilson 1927), at first from what was learned of it, later also from answers
    that are at least a hundred back; it only falls, so that a slow change is not taken for noise. The other
    counts wrong answers that were wrong again when asked twice more. Chance seldom does that, and a judge
    that has changed its mind about a question always does, so that this one finds a change also where the
    first has much noise to allow for.
    """

    def __init__(self, *, repeated: int, wavered: int, alpha: float = 0.05, horizon: int = 1000) -> None:
        """Start before the first answer.

        Args:
            repeated: Answers to probes that had been answered rightly before.
            wavered: Of those, wrong ones.
            alpha: Probability of a false alarm within `horizon` answers.
            horizon: Answers.

        Raises:
            ValueError: If a number is out of range.
        """
        if not (0 <= wavered <= repeated and 0 < alpha < 1 and horizon >= 1):
            given = f"wavered={wavered!r} of {repeated!r}, alpha={alpha!r} or horizon={horizon!r}"
            raise ValueError(f"{given} is out of range")
        self._answers, self._wrong = repeated, wavered
        self._latest: deque[bool] = deque()
        self._every = _FlipAlarm(self._noise(), alpha=alpha / 2, horizon=horizon)
        self._confirmed = _FlipAlarm(_CONFIRMED, alpha=alpha / 2, horizon=horizon)

    @property
    def n(self) -> int:
        """Answers so far."""
        return self._every.n

    @property
    def tolerated(self) -> float:
        """Share of wrong answers that is put down to chance."""
        return self._every.tolerated

    @property
    def settled(self) -> tuple[int, int]:
        """Wrong answers, and all: those of learning, and those that are at least a hundred back."""
        return self._wrong, self._answers

    @property
    def raised_at(self) -> int | None:
        """After how many answers the alarm went off; None while it has not."""
        found = [one.raised_at for one in (self._every, self._confirmed) if one.raised_at is not None]
        return min(found, default=None)

    def add(self, right: bool, *, confirmed: bool = False) -> bool:
        """Take an answer into account; returns whether the alarm has gone off, now or before.

        Args:
            right: Whether the answer was right.
            confirmed: Whether a wrong one was wrong again when the probe was asked twice more.
        """
        self._every.add(right)
        self._confirmed.add(not confirmed)
        self._latest.append(right)
        if len(self._latest) > _SETTLED:
            self._answers += 1
            self._wrong += not self._latest.popleft()
            if (noise := self._noise()) < self.tolerated:
                self._every.tolerate(noise)
        return self.raised_at is not None

    def _noise(self) -> float:
        if not self._answers:
            return _MOST_NOISE
        found = wilson(self._wrong / self._answers, self._answers, normal_quantile(_CERTAINTY))[1]
        return min(max(found, _LEAST_NOISE), _MOST_NOISE)
