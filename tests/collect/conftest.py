"""What the tests of the collector share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from collect.running import Running


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path)
    yield made
    made.close()
