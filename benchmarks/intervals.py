"""The tables of docs/reading-scores.md: turns needed for a margin, and what a naive mean says of a sample.

python benchmarks/intervals.py
"""

from __future__ import annotations

import numpy as np

from steelyard.stats import turns_needed, weighted_mean

MARGINS = (0.10, 0.05, 0.03, 0.02, 0.01)
RATES = (0.5, 0.8, 0.9, 0.95)


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


if __name__ == "__main__":
    needed()
    naive()
