"""`steelyard dashboards`: files for Grafana and Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
        typer.echo(f"wrote {path}")
    typer.echo("docs/dashboards.md says how to load them into Grafana and Prometheus")
