"""Every test of the room holds every Monitor that it made against law 2, when it is over."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from online.helpers import check_law
from steelyard.online import Monitor


@pytest.fixture(autouse=True)
def the_equations_hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test did to a Monitor, and whether or not it looked at the counts."""
    made: list[weakref.ref[Monitor]] = []
    begin = Monitor.__init__

    @functools.wraps(begin)
    def remember(self: Monitor, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        made.append(weakref.ref(self))

    monkeypatch.setattr(Monitor, "__init__", remember)
    yield
    for alive in made:
        if (monitor := alive()) is not None:
            check_law(monitor.stats())
