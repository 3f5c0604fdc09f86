"""Fixtures of the tests of the OpenTelemetry sink."""

from __future__ import annotations

from typing import Any

import pytest

from sinks.otel.telemetry import Telemetry


@pytest.fixture
def telemetry() -> Any:
    made = Telemetry()
    yield made
    if made.tracers._atexit_handler is not None:
        made.close()
