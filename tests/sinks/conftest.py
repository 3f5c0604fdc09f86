"""Fixtures of the tests of sinks."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def telemetry() -> Any:
    # With the lowest versions that are allowed there is no such sink, and no telemetry.
    from sinks.otel.telemetry import Telemetry

    made = Telemetry()
    yield made
    if made.tracers._atexit_handler is not None:
        made.close()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "PHOENIX_API_KEY",
        "PHOENIX_COLLECTOR_ENDPOINT",
        "LANGFUSE_PUBLIC_KEY",
        "LANGFUSE_SECRET_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("LANGSMITH_API_KEY", "DD_API_KEY", "DD_LLMOBS_ML_APP", "DD_SITE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
