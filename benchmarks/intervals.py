"""The tables of docs/check/measured.md: turns needed, naive means, what intervals cover and could.

python benchmarks/intervals.py
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from steelyard.stats import turns_needed, weighted_mean

_Array = npt.NDArray[np.float64]

MARGINS = (0.10, 0.05, 0.03, 0.02, 0.01)
RATES = (0.5, 0.8, 0.9, 0.95)
_TURNS = (5, 10, 20, 50, 100, 200)


def needed() -> None:
    """Turns to judge for a half-width of a 95 % interval."""
    print("| rate | " + " | ".join(f"±{margin:.2f}" for margin in MARGINS) + " |")
    print("|---|" + "---:|" * len(MARGINS))
    for rate in RATES:
        cells = " | ".join(f"{turns_needed(margin, mean=rate):,}" for margin in MARGINS)
        print(f"| {rate:.2f} | {cells} |")


def naive() -> None:
    """A tenth of all turns is bad; of those most look suspicious, and suspicious turns are all judged."""
    draw = np.random.default_rng(1)
    rounds, covered, means, plain = 400, 0, [], []
    for _ in range(rounds):
        values = (draw.random(3_000) < 0.9).astype(float)
        inclusion = np.where(draw.random(3_000) < np.where(values < 0.5, 0.6, 0.05), 1.0, 0.1)
        picked = draw.random(3_000) < inclusion
        found = weighted_mean(values[picked].tolist(), inclusion[picked].tolist())
        assert found is not None
        covered += found.low <= 0.9 <= found.high
        means.append(found.value)
        plain.append(float(values[picked].mean()))
    print(f"truth .900, naive mean {np.mean(plain):.3f}, weighted mean {np.mean(means):.3f}, ", end="")
    print(f"interval covers the truth in {covered / rounds:.1%} of {rounds} rounds")


def _shapes(draw: np.random.Generator, count: int) -> dict[str, _Array]:
    return {
        "half": (draw.random(count) < 0.5).astype(float),
        "nine tenths": (draw.random(count) < 0.9).astype(float),
        "rare failures": (draw.random(count) < 0.97).astype(float),
        "claims": draw.binomial(4, draw.beta(5, 0.6, count), count) / 4,
        "smooth": draw.beta(8, 2, count),
        "two kinds": np.clip(draw.normal(np.where(draw.random(count) < 1 / 7, 0.2, 0.9), 0.03), 0.001, 0.999),
    }


def _designs(draw: np.random.Generator, values: _Array) -> dict[str, tuple[_Array, float | None]]:
    """Inclusion probabilities, and the lowest there is where they differ."""
    noticed = draw.random(len(values)) < np.where(values < 0.5, 0.6, 0.05)
    return {
        "picked alike": (np.ones_like(values), None),
        "suspicious ones tenfold": (np.where(noticed, 1.0, 0.1), 0.1),
        "probabilities .01 to 1": (np.asarray(10 ** (-2 * draw.random(len(values)))), 0.01),
    }


def coverage(rounds: int = 2_000) -> None:
    """How often intervals hold the truth, on average over shapes and for the worst of them."""
    found: dict[tuple[int, str], list[float]] = {}
    for turns in _TURNS:
        draw = np.random.default_rng(turns)
        for values in _shapes(draw, 20 * turns * rounds // 3).values():
            for design, (inclusion, floor) in _designs(draw, values).items():
                picked = np.flatnonzero(draw.random(len(values)) < inclusion)[: turns * rounds]
                covered = [
                    _covers(values[part], inclusion[part], floor, float(values.mean()))
                    for part in np.split(picked[: len(picked) // turns * turns], len(picked) // turns)
                ]
                found.setdefault((turns, design), []).append(float(np.mean(covered)))
    print(
        "| turns | picked alike | worst | suspicious ones tenfold | worst | probabilities .01 to 1 | worst |"
    )
    print("|---:|" + "---:|" * 6)
    for turns in _TURNS:
        cells = [
            f"{np.mean(shares):.1%} | {min(shares):.1%}"
            for (count, _), shares in found.items()
            if count == turns
        ]
        print(f"| {turns} | " + " | ".join(cells).replace("%", " %") + " |")


def attainable() -> None:
    """What share of samples of zeros and ones any interval can cover: nearest below 95 %, and from there on.

    An interval of n such scores depends on the number of ones alone, so it covers a rate with the probability
    of a run of such numbers; there is nothing in between.
    """
    print("| rate | " + " | ".join(f"{turns} turns" for turns in _TURNS) + " |")
    print("|---|" + "---:|" * len(_TURNS))
    for rate in (0.5, 0.9, 0.95, 0.97, 0.99):
        cells = " | ".join("{:.1f} or {:.1f} %".format(*_nearest(turns, rate)) for turns in _TURNS)
        print(f"| {rate:.2f} | {cells} |")


def _nearest(turns: int, rate: float) -> tuple[float, float]:
    ones = range(turns + 1)
    sums = np.cumsum([0.0] + [comb(turns, k) * rate**k * (1 - rate) ** (turns - k) for k in ones])
    shares = 100 * np.asarray([sums[last + 1] - sums[first] for first in ones for last in ones[first:]])
    return float(shares[shares < 95].max()), float(shares[shares >= 95].min())


def _covers(values: _Array, inclusion: _Array, floor: float | None, truth: float) -> bool:
    estimate = weighted_mean(values, inclusion, floor=floor)
    assert estimate is not None
    return estimate.low <= truth <= estimate.high


if __name__ == "__main__":
    needed()
    naive()
    coverage()
    attainable()
