"""Fixtures of the tests of what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from judge_server import JudgeServer


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running
