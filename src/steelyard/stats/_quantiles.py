"""Quantiles of the normal and of Student's t distribution, so that nothing beyond numpy is needed."""

from __future__ import annotations

import math
from statistics import NormalDist

_NORMAL = NormalDist()


def normal_quantile(probability: float) -> float:
    """The value below which a standard normal lies with this probability."""
    return _NORMAL.inv_cdf(probability)


def normal_cdf(value: float) -> float:
    """The probability that a standard normal is at most this."""
    return _NORMAL.cdf(value)


def two_sided_p(z: float) -> float:
    """The probability that a standard normal is at least this far from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def t_two_sided_p(t: float, freedom: float) -> float:
    """The probability that Student's t is at least this far from 0; to a few percent of itself.

    Source: Wallace, Annals of Mathematical Statistics 30, 1959, as improved by Hill 1970 (eq. 1).
    """
    spread = freedom - 0.5
    if spread <= 0 or not math.isfinite(t):
        return 1.0 if math.isfinite(t) else 0.0
    c = 48 * spread * spread
    z = math.sqrt(spread * math.log1p(t * t / freedom))
    z += (z**3 + 3 * z) / c
    return two_sided_p(z)


def t_quantile(probability: float, freedom: float) -> float:
    """The upper quantile of Student's t; exact to a thousandth from two degrees of freedom on.

    Args:
        probability: At least 1/2, below 1.
        freedom: Degrees of freedom, whole or not, at least 1.

    Source: closed forms at 1 and 2 degrees; else Hill, Algorithm 396, Communications of the ACM 13, 1970.
    """
    two_sided = 2 * (1 - probability)
    if freedom > 1e6:
        return normal_quantile(probability)
    if freedom <= 1:
        return 1 / math.tan(two_sided * math.pi / 2)
    if freedom < 2:
        # Hill's series is poor here; 1/freedom runs smoothly between the two closed forms.
        share = (1 / freedom - 0.5) * 2
        ends = math.log(t_quantile(probability, 1.0)), math.log(t_quantile(probability, 2.0))
        return math.exp(share * ends[0] + (1 - share) * ends[1])
    if freedom == 2:
        return math.sqrt(2 / (two_sided * (2 - two_sided)) - 2)
    return _hill(two_sided, freedom)


def _hill(two_sided: float, n: float) -> float:
    a = 1 / (n - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * two_sided) ** (2 / n)
    if y > 0.05 + a:
        x = normal_quantile(two_sided / 2)
        y = x * x
        if n < 5:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) * (
            n + 1
        ) / (n + 2) + 1 / y
    return math.sqrt(n * y)
