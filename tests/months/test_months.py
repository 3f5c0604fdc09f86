"""An incident in one slice is the first line, a quiet month has none; the version that did it is named."""

from __future__ import annotations

from collections import Counter

import pytest

from months.looking import findings, told
from months.traffic import deployed, month
from steelyard.stats import find_deploys

_SEEN = 0.99
"""Power from which an incident counts as large enough to be seen."""


def quiet(months: int, *, first: int = 0) -> int:
    """In how many of so many quiet months anything is told."""
    return sum(bool(findings(month(seed, incident=False))) for seed in range(first, first + months))


def incidents(months: int, *, first: int = 10_000) -> Counter[str]:
    """How often the first line is the incident, of how many that could be seen; how often it is another."""
    counts: Counter[str] = Counter()
    for seed in range(first, first + months):
        made = month(seed, incident=True)
        found = findings(made)
        is_told = told(made, found)
        counts["false"] += bool(found) and not is_told
        if made.power >= _SEEN:
            counts["seen"] += 1
            counts["told"] += is_told
    return counts


def deploys(number: int, *, turns: int) -> Counter[str]:
    """How often the version that did it is named alone, among several, or another one is."""
    counts: Counter[str] = Counter()
    for seed in range(number):
        made = deployed(seed, turns=turns)
        names = {one.name for one in find_deploys(made.sample, made.times, made.versions, grown=False)}
        counts["with"] += made.guilty is not None
        counts["right"] += made.guilty is not None and names == {made.guilty}
        counts["wrong"] += len(names) == 1 and made.guilty not in names
    return counts


def test_an_incident_is_the_first_line_and_a_quiet_month_has_none() -> None:
    assert quiet(3) == 0
    found = incidents(8)
    assert found["seen"] >= 1 and found["told"] == found["seen"] and found["false"] <= 1, found


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_over_many_months() -> None:
    assert quiet(250) <= 0.05 * 250
    found = incidents(500)
    assert found["told"] >= 0.85 * found["seen"], found
    assert found["false"] <= 0.05 * 500, found


@pytest.mark.parametrize(("turns", "right"), [(500, 0.75), (2_000, 0.9)])
def test_the_version_that_did_it_is_named(turns: int, right: float) -> None:
    found = deploys(40, turns=turns)
    assert found["right"] >= right * found["with"] and found["wrong"] <= 2, found


@pytest.mark.slow
def test_over_many_deploys() -> None:
    found = deploys(200, turns=500)
    assert found["wrong"] <= 0.05 * 200, found
    assert found["right"] >= 0.8 * found["with"], found
