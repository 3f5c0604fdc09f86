"""Every Monitor that a test of the room made is held against law 2 and closed; servers that tests share."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from online.helpers import check_law
from servers import NatsServer, RabbitServer
from steelyard.online import Monitor


@pytest.fixture(autouse=True)
def the_equations_hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Monitor]]:
    """Whatever a test did to a Monitor, and whether or not it looked at the counts."""
    made: list[Monitor] = []
    begin = Monitor.__init__

    @functools.wraps(begin)
    def remember(self: Monitor, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(Monitor, "__init__", remember)
    yield made
    for monitor in made:
        check_law(monitor.stats())
        monitor.close(0)


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats")).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def rabbit_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitServer]:
    if not RabbitServer.there():
        pytest.skip("needs RabbitMQ: apt-get install rabbitmq-server")
    server = RabbitServer(tmp_path_factory.mktemp("rabbit")).start()
    yield server
    server.stop()
