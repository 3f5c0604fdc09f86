"""Fixtures of the tests of golden sets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from golden import apps


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    apps.LET_GO.clear()
    yield
    apps.LET_GO.set()
