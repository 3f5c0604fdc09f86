"""Fixtures of the tests of queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from online.queue.spools import OPEN


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()
