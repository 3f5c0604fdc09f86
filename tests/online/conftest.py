"""Every test of the room holds every Monitor that it made against law 2; servers that tests share."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from online.helpers import check_law
from online.servers import NatsServer
from steelyard.online import Monitor


@pytest.fixture(autouse=True)
def the_equations_hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test did to a Monitor, and whether or not it looked at the counts."""
    made: list[Monitor] = []
    begin = Monitor.__init__

    @functools.wraps(begin)
    def remember(self: Monitor, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(Monitor, "__init__", remember)
    yield
    for monitor in made:
        check_law(monitor.stats())
    made.clear()


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats")).start()
    yield server
    server.stop()
