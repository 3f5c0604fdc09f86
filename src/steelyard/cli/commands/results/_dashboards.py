"""`steelyard dashboards`: files for Grafana and Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli._say import say

_NEXT = """
Prometheus: name {rules} under rule_files in prometheus.yml, and scrape the
application's metrics or send them by OTLP.
Grafana: Dashboards, New, Import, and pick the Prometheus data source."""


def dashboards(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to put them.")] = Path(
        "dashboards"
    ),
) -> None:
    """Write a Grafana dashboard and Prometheus' recording and alert rules.

    **Examples**

    - `steelyard dashboards --out monitoring`
    - `promtool check rules monitoring/prometheus-rules.yaml`
    """
    from steelyard.dashboards import write_to

    for path in write_to(out):
        say(f"wrote {path}")
    say(_NEXT.format(rules=out / "prometheus-rules.yaml"))
