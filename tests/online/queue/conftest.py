"""Fixtures of the tests of queues."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from online.queue.spools import OPEN
from servers import NatsServer


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


@pytest.fixture
def nats_with(tmp_path: Path) -> Iterator[Callable[..., NatsServer]]:
    """Starts a server of the test's own, which ends with the test."""
    started: list[NatsServer] = []

    def start(options: Sequence[str] = ()) -> NatsServer:
        started.append(NatsServer(tmp_path, options))
        return started[-1].start()

    yield start
    for server in started:
        server.stop(signal.SIGKILL)
