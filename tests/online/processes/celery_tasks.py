"""Tasks for Celery's prefork workers, over a broker in a folder."""

from __future__ import annotations

from celery import Celery

from online.processes import forking_hosts

app = Celery(broker="filesystem://")
app.conf.broker_transport_options = {
    "data_folder_in": "broker",
    "data_folder_out": "broker",
    "control_folder": "control",
    "processed_folder": "processed",
}


@app.task  # type: ignore[untyped-decorator]
def take(number: int) -> None:
    """Take a turn."""
    forking_hosts.take(number)
