"""Servers that the tests of this room share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers import PostgresServer


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    if not PostgresServer.there():
        pytest.skip("needs a Postgres: apt-get install postgresql")
    server = PostgresServer(tmp_path_factory.mktemp("postgres")).start()
    yield server
    server.stop()
