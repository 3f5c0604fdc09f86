"""A made-up month: conversations, a budget that thins the sample, weeks that repeat; one tenant falls."""

from __future__ import annotations

from pathlib import Path

import anyio
import httpx
import numpy as np
import pytest

from report.parts import DAY, MONDAY, month, results
from steelyard.report import report


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
    assert (figures.slices, figures.findings) == ((), ())


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_the_fall_of_one_tenant_is_told_and_whose_it_is(tmp_path: Path, seed: int) -> None:
    path = results(tmp_path / "m.db", month(np.random.default_rng(seed), falls=True))
    figures = report(path).figures
    (metric,) = figures.metrics
    (change,) = (change for change in metric.changes if change.difference.clear)
    assert change.worse and change.until is None
    assert (change.since - MONDAY) / DAY == pytest.approx(20, abs=3)
    (finding,) = figures.findings
    assert finding.names == (("customer", "tenant 2"),)
    assert finding.worse and finding.earliest <= finding.since <= finding.latest
    assert (finding.since - MONDAY) / DAY == pytest.approx(20, abs=1)


def seen(path: Path) -> str:
    """What the live view shows of all of it, and of what stands out."""

    pytest.importorskip("starlette", reason="starlette is not installed")
    from steelyard.view import app

    async def pages() -> str:
        transport = httpx.ASGITransport(app=app(str(path)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return "".join([(await http.get(page)).text for page in ("/", "/api/closer")])

    return anyio.run(pages)


def test_the_view_tells_the_same(tmp_path: Path) -> None:
    quiet = seen(results(tmp_path / "quiet.db", month(np.random.default_rng(1), falls=False)))
    assert "No clear change" in quiet and "customer: tenant" not in quiet
    fallen = seen(results(tmp_path / "fallen.db", month(np.random.default_rng(1), falls=True)))
    assert "faithfulness fell" in fallen
    assert "customer: tenant 2" in fallen and "tenant 1" not in fallen
