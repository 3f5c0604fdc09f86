"""Every variable with every odd value: refused as configuration, or a Monitor starts and ends with it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from steelyard.errors import ConfigurationError
from steelyard.metrics import Metric
from steelyard.online import Monitor
from steelyard.online._settings import Settings
from steelyard.sinks import Sink

ODD = (
    *("", " ", "-1", "0", "1e400", "inf", "-inf", "nan", "1e308", "9" * 40, "-" + "9" * 40, "true", "0x10"),
    *(
        "[]",
        "{}",
        "[1]",
        "{a=1}",
        "[[1]]",
        "'x'",
        "\udcff",
        "1979-05-27",
        "07:32:00",
        "x" * 10_000,
        "../..",
        "/",
    ),
    *("{path=1}", "{model=1}", "[{a=1}]", "[{name=1}]", "nats://", "openai:", ":", "sqlite:", "jsonl:"),
    *("/", "postgresql://[", "http://["),
)
_ENTRIES = {
    "budget": ("cost_per_day", "requests_per_hour", "price"),
    "spool": ("path", "max_bytes", "lease_seconds", "durability", "evaluate"),
    "suspicion": ("rate",),
    "canaries": ("rate", "share"),
    "metric_rates": ("faithfulness",),
}
NAMES = (
    *(field.name for field in fields(Settings)),
    *(f"{table}__{entry}" for table, entries in _ENTRIES.items() for entry in entries),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_an_odd_value_is_refused_or_means_something(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variable = f"STEELYARD_{name.upper()}"
    metrics: list[Metric] | None = None if name == "metrics" else []
    sinks: list[Sink] | None = None if name.startswith(("sinks", "alarm")) else []
    for value in ODD:
        monkeypatch.setenv(variable, value)
        try:
            monitor = Monitor(metrics=metrics, sinks=sinks)
        except ConfigurationError:
            continue
        # No time in which nothing can be judged, masked or written is taken.
        assert all(getattr(monitor.options, one) > 0 for one in ("deadline", "mask_timeout", "sink_timeout"))
        # A time that was taken is one that a thread can wait for.
        assert monitor.close(monitor.options.exit_timeout) == 0
