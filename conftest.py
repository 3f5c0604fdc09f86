"""Test configuration for the whole repository: slow tests run only when asked for."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# Shared machines stall; a slow example is no failure. CI explores the same examples every time.
settings.register_profile("steelyard", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("steelyard")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--slow`."""
    parser.addoption("--slow", action="store_true", help="also run tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is slow unless asked."""
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="slow; run with --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)
