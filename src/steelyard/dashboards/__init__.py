"""Grafana and Prometheus files for the metrics that Steelyard reports.

The files are shipped as they are; `scripts/dashboards.py` builds the Grafana ones. Names are those that the
Prometheus exporter and Prometheus' own OTLP endpoint give the metrics (dots become underscores, counters end
in `_total`, seconds in `_seconds`).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

FILES = ("grafana-steelyard.json", "prometheus-rules.yaml")
"""What there is to write."""


def write_to(folder: Path) -> list[Path]:
    """Write the files into a folder, which is made if it does not exist.

    Files of these names are replaced: they are generated, and an update of Steelyard may bring others.

    Returns:
        The files written.

    Raises:
        OSError: If the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in FILES:
        content = files("steelyard.dashboards").joinpath("data", name).read_bytes()
        path = folder / name
        path.write_bytes(content)
        written.append(path)
    return written
