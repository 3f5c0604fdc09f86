"""How often a gate of `steelyard test` is wrong on applications that waver, over 36 settings.

    python benchmarks/golden_gate.py [--runs 200] [--sizes 20 50 100]

Settings: 20, 50 and 100 cases; scores of zero and one of which a third of the cases, or all, waver, and
graded scores with a standard deviation of .1 and .25; base rates of .7, .8 and .9. Ways to decide: `bar` is a
number, asking the application again until it is decided (`--gate faithfulness=0.8 --repeat app`); `earlier`
is the mean of one earlier run, with one answer for each case on either side (`--gate faithfulness --baseline
main.json`, the default); `repeated` is the mean of a run with five answers for each case, asking again.

Printed for each setting and way: failures with nothing changed (at most 5 % are promised), passes after a
fall of .05 (at most 10 %), and runs that are not decided, of both.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt

from steelyard.stats import GateTest, repeats_order

Rates = npt.NDArray[np.float64]
Answer = Callable[[Rates], Rates]
FALL, BATCH, PASSES = 0.05, 8, 5
rng = np.random.default_rng(7)


def rates_of(cases: int, base: float, noise: str, fall: float) -> Rates:
    """The expected score of each case."""
    if noise != "a third":
        return np.full(cases, base - fall)
    wavering = cases // 3
    rest = np.arange(cases - wavering) < round((cases - wavering) * base)
    # The whole of the fall is in the cases that waver.
    own = (base * cases - rest.sum()) / wavering - fall * cases / wavering
    return np.concatenate([np.full(wavering, own), rest.astype(float)])


def answers(rates: Rates, noise: str) -> Rates:
    """One answer's score for each case."""
    if noise in ("a third", "all"):
        return (rng.random(len(rates)) < rates).astype(float)
    spread = float(noise)
    # A beta distribution keeps mean and spread within 0..1.
    size = np.maximum(rates * (1 - rates) / spread**2 - 1, 0.2)
    return rng.beta(rates * size, (1 - rates) * size)


def decided(way: str, base: float, rates: Rates, unchanged: Rates, noise: str, seed: int) -> GateTest:
    """One gate, as `steelyard test` decides it."""
    count = len(rates)
    kept = {"bar": 0, "earlier": 1, "repeated": PASSES}[way]
    runs = np.array([answers(unchanged, noise) for _ in range(kept)]).T
    test = GateTest(
        least=float(unchanged.mean()) if way == "bar" else None,
        fall=FALL,
        earlier={case: runs[case].tolist() for case in range(count)} if kept else None,
        once=way == "earlier",
    )
    for number in range(1 if way == "earlier" else PASSES):
        found = answers(rates, noise)
        for place, case in enumerate(repeats_order(range(count), seed=seed, number=number)):
            if number and place % BATCH == 0 and test.decision is not None:
                return test
            test.add(case, float(found[case]))
    return test


def main() -> None:
    """Print a line for each setting and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--ways", nargs="+", default=["bar", "earlier", "repeated"])
    given = parser.parse_args()
    sums: dict[str, list[tuple[float, float, float, float]]] = {}
    for way, cases, noise, base in product(
        given.ways, given.sizes, ("a third", "all", "0.1", "0.25"), (0.7, 0.8, 0.9)
    ):
        unchanged, fallen = (rates_of(cases, base, noise, fall) for fall in (0.0, FALL))
        same = [decided(way, base, unchanged, unchanged, noise, seed) for seed in range(given.runs)]
        worse = [decided(way, base, fallen, unchanged, noise, seed) for seed in range(given.runs)]
        share = [
            sum(test.decision == wanted for test in tests) / given.runs
            for tests, wanted in ((same, "fail"), (worse, "pass"), (same, None), (worse, None))
        ]
        calls = sum(test.calls for test in same) / given.runs / cases
        print(
            f"{way:<9} n {cases:>3}  noise {noise:<7} base {base}  false failures {share[0]:.3f}  false "
            f"passes {share[1]:.3f}  undecided {share[2]:.2f} and {share[3]:.2f}  passes {calls:.1f}",
            flush=True,
        )
        sums.setdefault(way, []).append((share[0], share[1], share[2], share[3]))
    for way, found in sums.items():
        worst, mean = np.max(found, axis=0), np.mean(found, axis=0)
        print(
            f"{way}: false failures at most {worst[0]:.3f}, mean {mean[0]:.3f}; false passes at most "
            f"{worst[1]:.3f}, mean {mean[1]:.3f}; undecided {mean[2]:.2f} and {mean[3]:.2f}"
        )


if __name__ == "__main__":
    main()
