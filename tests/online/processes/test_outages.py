"""Every kind of outage, with every queue, while a worker is killed: `benchmarks/outage.py`, scaled down."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from servers import NatsServer, PostgresServer, RabbitServer

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "outage.py"
QUEUES = ("memory", "file", "nats", "rabbit")
KINDS = ("away", "slow", "failing", "refusing", "full", "killed")
FAST = {("file", "away"), ("nats", "away")}
CELLS = [
    pytest.param(queue, kind, marks=[] if (queue, kind) in FAST else [pytest.mark.slow])
    for queue, kind in itertools.product(QUEUES, KINDS)
]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("queue", "kind"), CELLS)
def test_every_result_is_in_the_store_once_whatever_was_away(
    request: pytest.FixtureRequest, queue: str, kind: str
) -> None:
    if kind == "killed" and not PostgresServer.there():
        pytest.skip("needs Postgres: apt-get install postgresql")
    address = queue
    if queue in ("nats", "rabbit"):
        server: NatsServer | RabbitServer = request.getfixturevalue(f"{queue}_server")
        address = server.url
    found = outage("--queue", address, "--outage", kind, "--turns", "120", "--rate", "40", "--seconds", "4")
    # Each turn once in the store that was there; in the other one, or refused or lost by name.
    assert found["whole"], found
    assert found["refused"] == 0 or kind == "refusing", found
    assert found["lost"] == 0 or queue == "memory", found
    assert found["killed"] is (queue != "memory"), found
    # Judged again is what the killed worker had in work, on RabbitMQ also what it had not written yet, and
    # what a lease of two seconds has cost on a busy machine.
    assert found["judged_again"] <= 60, found


def outage(*options: str) -> dict[str, Any]:
    """What one run of the benchmark says."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), *options], capture_output=True, text=True, timeout=380, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said
