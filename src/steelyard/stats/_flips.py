"""Verdicts whose right answers are known: an alarm for the moment they begin to go wrong."""

from __future__ import annotations

from collections.abc import Sequence

_RATES = (0.05, 0.1, 0.2, 0.5)


class FlipAlarm:
    """Says when answers go wrong more often than is tolerated, with few false alarms however often one looks.

    For each of four rates of wrong answers above the tolerated one it keeps Shiryaev & Roberts' sum of
    likelihood ratios, S = (S + 1 / horizon) LR, which does not forget a fall that begins late behind a long
    good past. While at most the tolerated share is wrong, S - n / horizon cannot grow on average, so that S
    reaches 1 / alpha within `horizon` answers with a probability of at most alpha (Doob's inequality; Pollak,
    Annals of Statistics 15, 1987). With one in two hundred tolerated, one answer in ten that goes wrong is
    found within 100 answers in 96 of 100 cases (tests/stats/test_flips.py).
    """

    def __init__(self, *, tolerated: float = 0.005, alpha: float = 0.05, horizon: int = 1000) -> None:
        """Start before the first answer.

        Args:
            tolerated: Share of wrong answers that is nothing to speak of, in (0, 0.25].
            alpha: Probability of a false alarm within `horizon` answers.
            horizon: Answers.

        Raises:
            ValueError: If a number is out of range.
        """
        if not (0 < tolerated <= 0.25 and 0 < alpha < 1 and horizon >= 1):
            raise ValueError(
                f"tolerated={tolerated!r}, alpha={alpha!r} or horizon={horizon!r} is out of range"
            )
        self.n = 0
        self.raised_at: int | None = None
        """After how many answers the alarm went off; None while it has not."""
        rates: Sequence[float] = [rate for rate in _RATES if rate >= 2 * tolerated]
        self._wrong = [rate / tolerated for rate in rates]
        self._right = [(1 - rate) / (1 - tolerated) for rate in rates]
        self._sums = [0.0] * len(rates)
        self._opened = 1 / horizon
        self._limit = 1 / alpha

    def add(self, right: bool) -> bool:
        """Take an answer into account; returns whether the alarm has gone off, now or before."""
        self.n += 1
        ratios = self._right if right else self._wrong
        self._sums = [(sum_ + self._opened) * ratio for sum_, ratio in zip(self._sums, ratios, strict=True)]
        if self.raised_at is None and sum(self._sums) / len(self._sums) >= self._limit:
            self.raised_at = self.n
        return self.raised_at is not None
