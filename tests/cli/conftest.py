"""Fixtures of the command line's tests."""

from __future__ import annotations

import pytest

from cli.running import Steelyard


@pytest.fixture
def steelyard(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Steelyard:
    """The command line, with no key in its environment."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Steelyard(capfd, monkeypatch)
