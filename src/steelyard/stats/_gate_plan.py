"""What a gate over so many cases can find, before any is asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from steelyard.stats._estimate import normal_cdf, normal_quantile
from steelyard.stats._gate import MARGINS, GateTest

_PATHS = 4_000
_LOOKS = 8  # in a pass; cases are repeated a few at a time
_MOST_CASES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class GatePlan:
    """How a gate will be decided, if cases waver as much as is assumed."""

    cases: int
    """How many cases there are."""
    noise: float
    """Standard deviation of a case's score from one answer to the next."""
    fall: float
    """A fall of this size ..."""
    found: float
    """... fails with this probability,"""
    missed: float
    """passes with this one,"""
    undecided: float
    """or is not decided."""
    false_failures: float
    """The probability of a failure with the mean on the bar; once asked, a little below that promised."""
    undecided_unchanged: float
    """And of no decision there."""
    finds: float | None
    """The smallest fall that is found with the power wanted; None if it is above 1."""
    cases_needed: int | None
    """How many cases find `fall` with the power wanted; None if a million do not."""


def plan_gate(
    cases: int,
    *,
    noise: float,
    fall: float = 0.05,
    false_failures: float = 0.05,
    power: float = 0.9,
    passes: int = 1,
    earlier: int | None = None,
) -> GatePlan:
    """What `GateTest` will decide, by the normal approximation (simulated with a fixed seed).

    Args:
        cases: How many cases the gate is over; for unequal weights the effective number.
        noise: Standard deviation of a case's score from one answer to the next, in the metric's units.
        fall: The fall to be found.
        false_failures: As for `GateTest`.
        power: As for `GateTest`.
        passes: How often a case is answered at most; 1 decides once.
        earlier: Answers to each case that the bar rests on; None if it is a number.

    Raises:
        ValueError: If a number is out of range.

    >>> plan_gate(50, noise=0.3, fall=0.05, earlier=1).cases_needed
    650
    """
    if cases < 1 or noise < 0 or not fall > 0 or passes < 1 or (earlier is not None and earlier < 1):
        raise ValueError("cases, passes and earlier must be at least 1, noise at least 0 and fall above 0")

    def rates(count: int, size: float) -> tuple[float, float, float, float]:
        if passes == 1 and count < GateTest.fewest:
            return 0.0, 0.0, 0.0, 1.0
        if not noise:
            return 0.0, 1.0, 0.0, 0.0
        # All that matters is how many standard errors the fall is.
        scale = size * math.sqrt(count) / noise
        return _rates(round(scale, 6), false_failures, power, passes, earlier)

    false, found, missed, open_unchanged = rates(cases, fall)
    finds = _least(lambda step: rates(cases, step / 1000)[1] >= power, 1000)
    return GatePlan(
        cases=cases,
        noise=noise,
        fall=fall,
        found=found,
        missed=missed,
        undecided=max(1 - found - missed, 0.0),
        false_failures=false,
        undecided_unchanged=open_unchanged,
        finds=None if finds is None else finds / 1000,
        cases_needed=_least(lambda count: rates(count, fall)[1] >= power, _MOST_CASES),
    )


def _least(enough: Callable[[int], bool], most: int) -> int | None:
    """The least number that is enough, by bisection."""
    if not enough(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@lru_cache(maxsize=256)
def _rates(
    scale: float, false_failures: float, power: float, passes: int, earlier: int | None
) -> tuple[float, float, float, float]:
    """False failures, falls found, falls missed, undecided with nothing changed; noise is the unit."""
    known = 1 / earlier if earlier else 0.0
    if passes == 1:
        error = math.sqrt(1 + known)
        # As `GateTest` with one look: the pass and the failure may overlap, and are then cut in the middle.
        fail = min(-normal_quantile(1 - MARGINS[0] * false_failures) * error, -1e-12)
        ok = normal_quantile(1 - MARGINS[1] * (1 - power)) * error - scale
        fail, ok = (-scale / 2, -scale / 2) if ok < -scale / 2 < fail else (min(fail, -scale / 2), ok)
        ok = max(ok, fail)
        at = [normal_cdf((edge + shift) / error) for shift in (0.0, scale) for edge in (fail, ok)]
        return at[0], at[2], 1 - at[3], at[1] - at[0]
    answered = 1 + np.arange(0, (passes - 1) * _LOOKS + 1) / _LOOKS
    variance = 1 / answered + known
    # Means over more and more answers: their differences in time are independent, latest first.
    steps = np.sqrt(np.append(-np.diff(variance), variance[-1]))
    walks = np.cumsum((_normals(len(steps)) * steps)[:, ::-1], axis=1)[:, ::-1]
    limits = -math.log(false_failures), -math.log(1 - power)
    found = []
    for shift in (0.0, -scale):
        evidence = -scale / variance * (scale / 2 + walks + shift)
        failed, passed = (_first(evidence >= limits[0]), _first(evidence <= -limits[1]))
        found.append((float(np.mean(failed < passed)), float(np.mean(passed < failed))))
    (false, fine), (seen, missed) = found
    return false, seen, missed, 1 - false - fine


@lru_cache(maxsize=4)
def _normals(count: int) -> npt.NDArray[np.float64]:
    return np.random.default_rng(1).standard_normal((_PATHS, count))


def _first(reached: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """The first look at which it is reached; beyond the last where it never is."""
    found: npt.NDArray[np.intp] = np.where(reached.any(axis=1), reached.argmax(axis=1), reached.shape[1])
    return found
