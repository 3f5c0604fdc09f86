"""Servers that the tests of this room share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers import NatsServer, RabbitServer


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
