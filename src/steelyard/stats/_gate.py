"""A test of a mean over fixed cases that waver: measure again until it is decided, or decide once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from steelyard.stats._difference import mean_error, sign_flip_p
from steelyard.stats._estimate import normal_quantile, t_quantile

Decision = Literal["pass", "fail"]
_Case = TypeVar("_Case", bound=Hashable)
_Array = npt.NDArray[np.float64]

_PRIOR = 12.0
"""As how many repeats the first pass speaks for the noise within a case, which is seldom larger than that.

Found by simulation (benchmarks/golden_gate.py): the noise of the first few repeats is often underestimated,
and who looks after each of them stops when it is; with 4, false passes reach 14 % where 10 % are promised.
"""
MARGINS = 0.85, 0.75
"""Of the error rates, in one look: the rest is for what Student's t does not know of lopsided scores."""
_LEAST_SPREAD = 0.05
"""The spread between cases is taken for at least this: a few equal scores do not show that none wavers."""


class GateTest:
    """Decides whether a mean is at least a bar or has fallen by `fall` below it.

    The cases are fixed; what varies is what is measured of them, each time anew. The bar is a number
    (`least`), or what was measured of the same cases before (`earlier`), case by case. With e the mean above
    the bar and V its variance, the logarithm of the likelihood ratio between the two hypotheses is
    L = -fall / V * (fall / 2 + e), Wald's sequential test (Annals of Mathematical Statistics 16, 1945) in
    terms of information (Jennison & Turnbull, Group Sequential Methods, 2000, chapter 3). Under the first
    hypothesis exp(L) is a supermartingale for normal e, so it ever reaches 1 / `false_failures` with at most
    that probability, however often one looks (Ville); the same holds the other way round for 1 - `power`.

    V is estimated from repeats of a case, now and earlier, pooled over cases. Before there are any, it is
    estimated from how cases differ from what they were earlier, or else from the differences between cases,
    of which noise is a part. Between the two hypotheses, either decision is right.

    With `once`, there is one look and no more: it fails if a mean so low has at most the probability
    `false_failures` at the bar (by `sign_flip_p` where cases are paired), and passes if one so high has at
    most 1 - `power` after the fall. Fewer cases than `fewest` are not decided so.

    >>> test = GateTest(least=0.8, fall=0.05)
    >>> for case in [*range(20), *range(20)]:
    ...     test.add(case, 0.7)
    >>> test.decision
    'fail'
    """

    fewest = 5
    """One look at fewer cases decides nothing: of two and three, .15 and .12 pass after a fall."""

    def __init__(
        self,
        *,
        least: float | None = None,
        fall: float = 0.05,
        false_failures: float = 0.05,
        power: float = 0.9,
        earlier: Mapping[Any, Sequence[float]] | None = None,
        weights: Mapping[Any, float] | None = None,
        once: bool = False,
        exact: bool = False,
    ) -> None:
        """Start before the first score.

        Args:
            least: The mean that is promised; None: the mean of `earlier`, over the same cases.
            fall: How far below it a mean must be found with the probability `power`.
            false_failures: The largest probability of a failure while the mean reaches the bar.
            power: The probability of finding a fall of that size.
            earlier: What was measured of each case before: how it wavers, and the bar without `least`.
            weights: How much each case counts; 1 where it is not in.
            once: There is one look.
            exact: The mean is simply compared with the bar, and nothing is said of chance.

        Raises:
            ValueError: If an option is out of its range.
        """
        if not fall > 0:
            raise ValueError(f"fall must be above 0, not {fall!r}")
        if not (0 < false_failures < 0.5 and 0.5 <= power < 1):
            raise ValueError("false_failures must be in (0, 0.5) and power in [0.5, 1)")
        if least is None and not earlier:
            raise ValueError("a gate must have a bar: least, or earlier measurements")
        self.fall = fall
        self.calls = 0
        """Measurements so far."""
        self._least = least
        self._rates = false_failures, 1 - power
        self._earlier = {case: np.asarray(values, float) for case, values in (earlier or {}).items()}
        self._weights = weights or {}
        self._once = once
        self._exact = exact
        # Of each case the number of measurements, their sum, that of their squares and of their cubes.
        self._sums: dict[Hashable, list[float]] = {}

    def add(self, case: Hashable, value: float) -> None:
        self.calls += 1
        sums = self._sums.setdefault(case, [0.0, 0.0, 0.0, 0.0])
        for power in range(4):
            sums[power] += value**power

    @property
    def cases(self) -> int:
        return len(self._sums)

    @property
    def mean(self) -> float | None:
        """The weighted mean of the cases' means; None before the first."""
        if not self._sums:
            return None
        counts, totals, *_ = self._now()
        return float(self._shares() @ (totals / counts))

    @property
    def bar(self) -> float | None:
        """What the mean is held against; None before the first measurement, if it is that of `earlier`."""
        mean = self.mean
        return self._least if self._least is not None or mean is None else mean - self._above

    @property
    def standard_error(self) -> float:
        """How far the mean above the bar is uncertain; infinite while nothing is known of that."""
        return self._error(0.0)

    def _error(self, shift: float, *, passing: bool = False) -> float:
        """The standard error if the true mean is that much above the one seen.

        Cases that never wavered before may do so after a fall: whether one is ruled out (`passing`) goes by
        how cases differ from what they were, if that is more.
        """
        if self._exact or self.calls < 2:
            return 0.0 if self._exact else math.inf
        counts, totals, *_ = self._now()
        known = self._known()
        repeats, within = self._within()
        prior = self._first_guess(totals / counts, counts, known)
        noise = prior if not repeats else (within + _PRIOR * prior) / (repeats + _PRIOR)
        if passing and self._least is None:
            noise = max(noise, prior)
        if not self._once:
            # Of a variance that is itself estimated, 1 / V is too large on average by this.
            freedom = len(counts) - 1 + repeats
            noise *= freedom / max(freedom - 2, 1)
        # Only what is measured now has the noise of the mean in question; what was before has what was seen.
        parts = (1 + max(self._slope() * shift, 0.0)) / counts
        if self._least is None:
            parts = parts + [1 / len(values) for values in known if values is not None]
        return math.sqrt(noise * float(self._shares() ** 2 @ parts))

    def _within(self) -> tuple[int, float]:
        """How many repeats of cases there are, now and earlier, and their squares about their case's mean."""
        counts, totals, squares, _ = self._now()
        again = [values for values in self._known() if values is not None and len(values) > 1]
        repeats = self.calls - len(counts) + sum(len(values) - 1 for values in again)
        within = max(float((squares - totals * totals / counts).sum()), 0.0)
        return repeats, within + sum(float(((values - values.mean()) ** 2).sum()) for values in again)

    def interval(self, *, level: float = 0.95) -> tuple[float, float] | None:
        """The normal interval of the mean above the bar, added to the bar, for people."""
        mean, error = self.mean, self.standard_error
        if mean is None or math.isinf(error):
            return None
        half = normal_quantile((1 + level) / 2) * error
        return mean - half, mean + half

    def _slope(self) -> float:
        """By how much the noise grows with the mean, as a share of it: third moment / variance^2.

        Scores that lie near 1 with a few near 0 vary less in a sample that has happened to turn out well: to
        be sure that the mean has not fallen, the noise must be that of the fallen one.
        """
        counts, totals, squares, cubes = (float(part.sum()) for part in self._now())
        mean = totals / counts
        variance = max(squares / counts - mean * mean, 0.0)
        third = cubes / counts - 3 * mean * squares / counts + 2 * mean**3
        return third / variance**2 if variance > _LEAST_SPREAD**2 else 0.0

    @property
    def evidence(self) -> float:
        """The logarithm of the likelihood ratio: above 0 it speaks for a fall.

        The noise is that of the hypothesis that it speaks against.
        """
        if not self._sums:
            return 0.0
        above = self._above
        error = self._error(-above if above < -self.fall / 2 else -self.fall - above)
        return 0.0 if math.isinf(error) else -self.fall / max(error * error, 1e-12) * (self.fall / 2 + above)

    @property
    def decision(self) -> Decision | None:
        """What is decided; None while it is not."""
        if not self._sums:
            return None
        if self._exact:
            # A mean that is on the bar but for rounding passes.
            return "fail" if self._above < -1e-9 else "pass"
        if self._once:
            return self._at_once() if len(self._sums) >= self.fewest else None
        evidence = self.evidence
        if evidence >= -math.log(self._rates[0]):
            return "fail"
        return "pass" if evidence <= math.log(self._rates[1]) else None

    def _at_once(self) -> Decision | None:
        error, above = self.standard_error, self._above
        if math.isinf(error):
            return None
        freedom = self._freedom()
        failed, passed = (
            t_quantile(1 - margin * rate, freedom) for margin, rate in zip(MARGINS, self._rates, strict=True)
        )
        cautious = self._error(0.0, passing=True)
        low = above <= -failed * error
        if self._least is None and all(values is not None and len(values) == 1 for values in self._known()):
            low = sign_flip_p(self._changes() * self._shares()) / 2 <= MARGINS[0] * self._rates[0]
        if low and above < -self.fall / 2:
            return "fail"
        # A mean that is surely below the bar, and surely not as far as the fall, is fine.
        if above >= passed * cautious - self.fall:
            return "pass"
        return "fail" if low and above < 0 and above <= -failed * cautious else None

    def _freedom(self) -> float:
        """Of the noise: a few heavy cases tell little of it (Satterthwaite, Biometrics Bulletin 2, 1946)."""
        parts = self._shares() ** 2
        return max(float(parts.sum() ** 2 / (parts @ parts)) - 1, 1.0)

    @property
    def _above(self) -> float:
        return float(self._shares() @ self._changes())

    def _changes(self) -> _Array:
        counts, totals, *_ = self._now()
        bars = [
            self._least if self._least is not None else float(values.mean()) if values is not None else 0.0
            for values in self._known()
        ]
        changes: _Array = totals / counts - np.array(bars)
        return changes

    def _first_guess(self, means: _Array, counts: _Array, known: Sequence[_Array | None]) -> float:
        """The noise of one measurement of a case, before any case was measured twice."""
        pairs = [
            (mean - float(values.mean()), 1 / count + 1 / len(values), share)
            for mean, count, values, share in zip(means, counts, known, self._shares(), strict=True)
            if values is not None
        ]
        if len(pairs) > 1:
            # Unequal numbers of measurements are brought to the same scale first.
            changes, parts, shares = np.array(pairs).T
            scaled = changes / np.sqrt(parts)
            error = mean_error(scaled, shares)
            size = float(shares.sum()) ** 2 / float(shares @ shares)
            # A change of the application itself is in the differences too, so that this is rather too much.
            return (error**2 + float(np.average(scaled, weights=shares)) ** 2 / size) * size
        shares = self._shares()
        size = 1 / float(shares @ shares)
        between = mean_error(means - float(shares @ means), shares) ** 2 * size if len(means) > 1 else 0.0
        return max(between, _LEAST_SPREAD**2)

    def _now(self) -> tuple[_Array, _Array, _Array, _Array]:
        table: _Array = np.array(list(self._sums.values()), float)
        return table[:, 0], table[:, 1], table[:, 2], table[:, 3]

    def _known(self) -> list[_Array | None]:
        return [self._earlier.get(case) for case in self._sums]

    def _shares(self) -> _Array:
        weights = np.array([self._weights.get(case, 1.0) for case in self._sums])
        shares: _Array = weights / weights.sum()
        return shares


def repeats_order(cases: Sequence[_Case], *, seed: int, number: int) -> list[_Case]:
    """The cases in the order in which their repeat with this number is taken: random, and the same again."""
    order = np.random.default_rng([seed, number]).permutation(len(cases))
    return [cases[index] for index in order]
