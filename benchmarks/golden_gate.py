"""Error rates and calls of the sequential gate, beside tests of fixed size with the same power.

    python benchmarks/golden_gate.py [--runs 2000]

A simulated judge gives the wrong verdict on a case with a probability of 10 %, anew at every call. The set
has 100 cases. The fixed designs: the usual test for the mean of so many scores (`usual`), and whole passes
whose noise is known beforehand, which it never is (`best`).
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from steelyard.stats import GateTest, fixed_calls, repeats_order

CASES, NOISE, FALL, BATCH, PASSES = 100, 0.1, 0.05, 8, 5


def one_run(truth: np.ndarray, least: float, rng: np.random.Generator, seed: int) -> GateTest:
    """One gate, as `steelyard test` runs it."""
    test = GateTest(least=least, fall=FALL)
    for number in range(PASSES):
        order = range(CASES) if number == 0 else repeats_order(range(CASES), seed=seed, number=number)
        for position, case in enumerate(order):
            if number and position % BATCH == 0 and test.decision is not None:
                return test
            test.add(case, float(truth[case] != (rng.random() < NOISE)))
    return test


def main() -> None:
    """Print one line for each size of fall."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    rng = np.random.default_rng(7)
    truth = np.arange(CASES) < 90
    judged = 0.9 * (1 - NOISE) + 0.1 * NOISE
    for name, least in (
        ("on the bar", judged),
        ("fallen by .05", judged + FALL),
        ("above by .05", judged - FALL),
    ):
        tests = [one_run(truth, least, rng, seed) for seed in range(runs)]
        failed = sum(test.decision == "fail" for test in tests) / runs
        undecided = sum(test.decision is None for test in tests) / runs
        calls = sum(test.calls for test in tests) / runs
        print(f"{name:<14} fails {failed:.3f}  undecided {undecided:.3f}  calls {calls:.0f}", end="")
        if name.startswith("fallen"):
            usual = fixed_calls(spread=math.sqrt(judged * (1 - judged)), fall=FALL, power=failed)
            best = fixed_calls(spread=math.sqrt(NOISE * (1 - NOISE)), fall=FALL, power=failed)
            print(
                f"  of equal power: usual {usual}, best {best} ({math.ceil(best / CASES) * CASES} in passes)",
                end="",
            )
        print()


if __name__ == "__main__":
    main()
