"""A test of a mean over fixed cases whose scores waver: measure again until it is decided."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal, TypeVar

import numpy as np

from steelyard.stats._quantiles import normal_quantile

Decision = Literal["pass", "fail"]
_Case = TypeVar("_Case", bound=Hashable)

_PRIOR = 4.0
"""As how many repeats the variance between cases speaks for the noise within one, which is seldom larger.

Found by simulation (tests/stats/test_gate.py): with 1, false failures are 6 % where a verdict is wrong with
a probability of 10 %, since the noise of the first few repeats is often underestimated; with 3, 4 %.
"""
_LEAST_SPREAD = 0.05
"""The spread between cases is taken for at least this: a few equal scores do not show that none wavers."""


class GateTest:
    """Decides whether a mean is at least `least` or has fallen by `fall`, one measurement at a time.

    The cases are fixed; what varies is their scores when they are measured again. With m the mean of the
    cases' means and V its variance, the logarithm of the likelihood ratio between the two hypotheses is L =
    fall / V * (least - fall / 2 - m), Wald's sequential test (Annals of Mathematical Statistics 16, 1945) in
    terms of information (Jennison & Turnbull, Group Sequential Methods, 2000, chapter 3). Under the first
    hypothesis exp(L) is a supermartingale for normal m, so it ever reaches 1 / `false_failures` with at most
    that probability, however often one looks (Ville); the same holds the other way round for 1 - `power`.

    V is estimated from repeats of a case, pooled over cases; before there are any, from the differences
    between cases, of which noise is a part. Between the two hypotheses, either decision is right.

    >>> test = GateTest(least=0.8, fall=0.05)
    >>> for case in range(20):
    ...     test.add(case, 0.7)
    >>> test.decision
    'fail'
    """

    def __init__(
        self,
        *,
        least: float,
        fall: float = 0.05,
        false_failures: float = 0.05,
        power: float = 0.9,
        known_variance: float = 0.0,
        exact: bool = False,
    ) -> None:
        """Start before the first score.

        Args:
            least: The mean that is promised.
            fall: How far below it a mean must be found with the probability `power`.
            false_failures: The largest probability of a failure while the mean is `least` or more.
            power: The probability of finding a fall of that size.
            known_variance: The variance of `least` itself, where that was measured too (a baseline).
            exact: Scores are known not to waver: the mean is simply compared with `least`.

        Raises:
            ValueError: If an option is out of its range.
        """
        if not fall > 0:
            raise ValueError(f"fall must be above 0, not {fall!r}")
        if not (0 < false_failures < 0.5 and 0.5 <= power < 1):
            raise ValueError("false_failures must be in (0, 0.5) and power in [0.5, 1)")
        self.least = least
        self.fall = fall
        self.calls = 0
        """Measurements so far."""
        self._fail_at = -math.log(false_failures)
        self._pass_at = -math.log(1 - power)
        self._known = known_variance
        self._exact = exact
        self._sums: dict[Hashable, list[float]] = {}

    def add(self, case: Hashable, value: float) -> None:
        """Take a measurement of a case into account."""
        self.calls += 1
        sums = self._sums.setdefault(case, [0.0, 0.0, 0.0])
        sums[0] += 1
        sums[1] += value
        sums[2] += value * value

    @property
    def cases(self) -> int:
        """How many cases have been measured."""
        return len(self._sums)

    @property
    def mean(self) -> float | None:
        """The mean of the cases' means; None before the first."""
        return float(np.mean(self._means())) if self._sums else None

    @property
    def standard_error(self) -> float:
        """How far the mean is uncertain because scores waver; infinite while nothing is known of that."""
        if self._exact:
            return 0.0
        if self.calls < 2:
            return math.inf
        counts, between, within = self._noise()
        noise = (within + _PRIOR * max(between, _LEAST_SPREAD**2)) / (self.calls - len(counts) + _PRIOR)
        return math.sqrt(noise * float((1 / counts).sum())) / len(counts)

    def interval(self, *, level: float = 0.95) -> tuple[float, float] | None:
        """The normal interval of the mean, for people; the decision does not rest on it."""
        mean, error = self.mean, self.standard_error
        if mean is None or math.isinf(error):
            return None
        half = normal_quantile((1 + level) / 2) * error
        return mean - half, mean + half

    @property
    def evidence(self) -> float:
        """The logarithm of the likelihood ratio: above 0 it speaks for a fall."""
        mean, error = self.mean, self.standard_error
        variance = error * error + self._known
        if mean is None or math.isinf(variance):
            return 0.0
        return self.fall / max(variance, 1e-12) * (self.least - self.fall / 2 - mean)

    @property
    def decision(self) -> Decision | None:
        """What is decided; None while it is not."""
        mean = self.mean
        if mean is None:
            return None
        if self._exact and not self._known:
            # A mean that is on the bar but for rounding passes.
            return "fail" if mean < self.least - 1e-9 else "pass"
        evidence = self.evidence
        if evidence >= self._fail_at:
            return "fail"
        return "pass" if evidence <= -self._pass_at else None

    def _means(self) -> list[float]:
        return [total / count for count, total, _ in self._sums.values()]

    def _noise(self) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float, float]:
        """Measurements of each case, the variance between cases, the sum of squares within them."""
        counts, totals, squares = np.array(list(self._sums.values()), float).T
        between = float(np.var(totals / counts, ddof=1)) if len(counts) > 1 else 0.0
        return counts, between, max(float((squares - totals * totals / counts).sum()), 0.0)


def fixed_calls(*, spread: float, fall: float, false_failures: float = 0.05, power: float = 0.9) -> int:
    """How many measurements a test of fixed size needs for the same error rates: ((z + z') spread / fall)^2.

    Args:
        spread: Standard deviation of a measurement.
        fall: The fall to be found.
        false_failures: Probability of a false failure.
        power: Probability of finding it.

    >>> fixed_calls(spread=0.3, fall=0.05, power=0.8)
    223
    """
    quantiles = normal_quantile(1 - false_failures) + normal_quantile(power)
    return math.ceil((quantiles * spread / fall) ** 2)


def repeats_order(cases: Sequence[_Case], *, seed: int, number: int) -> list[_Case]:
    """The cases in the order in which their repeat with this number is taken: random, and the same again."""
    order = np.random.default_rng([seed, number]).permutation(len(cases))
    return [cases[index] for index in order]
