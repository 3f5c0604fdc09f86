"""A made-up month: conversations, a budget that thins the sample, weeks that repeat; one tenant falls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from report.parts import results, turn
from steelyard.report import report
from steelyard.scores import Evaluation

MONDAY = 1_759_708_800.0
DAY = 86400.0


def month(draw: np.random.Generator, *, falls: bool) -> list[Evaluation]:
    """Conversations of four tenants; from day 20 on a quarter of one tenant's answers goes wrong."""
    found: list[Evaluation] = []
    for session in range(1_600):
        start, tenant = draw.uniform(0, 28), int(draw.integers(0, 4))
        usual = draw.beta(0.92 * 9, 0.08 * 9) + 0.03 * np.sin(2 * np.pi * start / 7)
        usual -= 0.35 * (falls and tenant == 2 and start >= 20)
        for place in range(draw.geometric(0.25)):
            inclusion = 0.8 if start < 14 else 0.4
            if draw.random() > inclusion:
                continue
            one = turn(
                len(found),
                float(draw.random() < usual),
                at=MONDAY + DAY * start + 60 * place,
                inclusion=inclusion,
                customer=f"tenant {tenant}",
                content=True,
            )
            found.append(replace(one, session=f"s{session}", happened_at=one.evaluated_at))
    return found


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_nothing_is_told_that_is_not_there(tmp_path: Path, seed: int) -> None:
    path = results(tmp_path / "m.db", month(np.random.default_rng(seed), falls=False))
    figures = report(path).figures
    (metric,) = figures.metrics
    assert metric.alike == "sessions"
    assert metric.design_effect > 1.1
    assert metric.estimate.units is not None
    assert metric.estimate.low <= 0.92 <= metric.estimate.high + 0.005
    assert [change for change in metric.changes if change.difference.clear] == []
    assert figures.slices == ()


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_the_fall_of_one_tenant_is_told_and_whose_it_is(tmp_path: Path, seed: int) -> None:
    path = results(tmp_path / "m.db", month(np.random.default_rng(seed), falls=True))
    figures = report(path).figures
    (metric,) = figures.metrics
    (change,) = (change for change in metric.changes if change.difference.clear)
    assert change.worse and change.until is None
    assert (change.since - MONDAY) / DAY == pytest.approx(20, abs=3)
    assert figures.slices
    assert {one.value for one in figures.slices} == {"tenant 2"}
