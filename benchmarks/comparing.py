"""How often `steelyard compare` calls chance worse, and what its intervals cover.

    python benchmarks/comparing.py [--runs 400]

Two runs of a golden set whose scores flip, or waver a little. `worse` counts answers in which any metric is
called worse over all cases, as `--fail-on-worse` does; `marked` those in which anything is, slices too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from steelyard.golden import CaseResult, MetricResult, Run, compare_runs
from steelyard.stats import paired_difference

Scores = npt.NDArray[np.float64]
Draw = Callable[[int, int], tuple[Scores, Scores]]
rng = np.random.default_rng(5)


def flips(down: float, up: float) -> Draw:
    """Zeros and ones, of which these shares fall and rise."""

    def draw(cases: int, metrics: int) -> tuple[Scores, Scores]:
        place = rng.random((cases, metrics))
        first = np.where(place < down, 1, np.where(place < down + up, 0, rng.random(place.shape) < 0.9))
        second = np.where(place < down, 0, np.where(place < down + up, 1, first))
        return first.astype(float), second.astype(float)

    return draw


def graded(spread: float, fall: float) -> Draw:
    """Scores of which each has noise of this standard deviation, and a fall."""

    def draw(cases: int, metrics: int) -> tuple[Scores, Scores]:
        first = rng.uniform(0.3, 0.7, (cases, metrics))
        return first, np.clip(first + rng.normal(-fall, spread, first.shape), 0, 1)

    return draw


def run_of(values: Scores) -> Run:
    """A stored run with these values, by case and metric; one case in two has a tag."""
    cases = tuple(
        CaseResult(
            id=str(number),
            question="q",
            tags=("half",) if number % 2 else (),
            metrics={f"m{place}": MetricResult(values=(float(value),)) for place, value in enumerate(row)},
        )
        for number, row in enumerate(values)
    )
    return Run(golden="made up", version="1", app="app", judge="judge", cases=cases)


def answers(draw: Draw, cases: int, metrics: int, runs: int) -> tuple[float, float]:
    """Shares of answers that call a metric worse, and that mark anything."""
    worse = marked = 0
    for _ in range(runs):
        first, second = draw(cases, metrics)
        found = compare_runs(run_of(first), run_of(second))
        worse += bool(found.worse)
        marked += any(one.clear for one in found.differences)
    return worse / runs, marked / runs


def interval(draw: Draw, truth: float, cases: int, runs: int) -> tuple[float, float]:
    """Coverage and mean width of the 95 % interval."""
    covered, width = 0, 0.0
    for _ in range(runs):
        first, second = draw(cases, 1)
        found = paired_difference(first[:, 0].tolist(), second[:, 0].tolist())
        assert found is not None
        covered += found.low <= truth <= found.high
        width += found.high - found.low
    return covered / runs, width / runs


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    kinds = [(f"flips {share:.2f}", flips(share / 2, share / 2)) for share in (0.0, 0.02, 0.05, 0.1)]
    for cases in (20, 50, 200):
        for metrics in (1, 5, 8):
            for name, draw in (*kinds, ("graded", graded(0.05, 0.0))):
                worse, marked = answers(draw, cases, metrics, runs)
                print(f"n {cases:>3}  metrics {metrics}  {name:<10}  worse {worse:.3f}  marked {marked:.3f}")
    for cases in (20, 50, 200):
        for down, up in ((0.02, 0.02), (0.1, 0.02), (0.2, 0.0), (0.3, 0.05)):
            covered, width = interval(flips(down, up), up - down, cases, 2 * runs)
            print(f"n {cases:>3}  {down:.2f} down {up:.2f} up  coverage {covered:.3f}  width {width:.3f}")
        for spread, fall in ((0.02, 0.0), (0.02, 0.1), (0.1, 0.1)):
            covered, width = interval(graded(spread, fall), -fall, cases, 2 * runs)
            width /= 2 * 1.96 * spread / cases**0.5
            print(
                f"n {cases:>3}  noise {spread} fall {fall}  coverage {covered:.3f}  "
                f"width {width:.2f} times that of known noise"
            )


if __name__ == "__main__":
    main()
