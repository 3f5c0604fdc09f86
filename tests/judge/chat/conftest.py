"""Fixtures of the tests of judges behind chat completions."""

from __future__ import annotations

from functools import partial

import pytest

from steelyard.judge.middleware import RetryPolicy


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backoff without the waiting; Retry-After is waited for."""
    monkeypatch.setattr("steelyard.judge.chat._judge.RetryPolicy", partial(RetryPolicy, first_wait=0.0))
