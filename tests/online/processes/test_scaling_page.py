"""The examples of docs/how-to/many-machines.md run as written, but for addresses, a path and the password."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

import programs
from servers import NatsServer, PostgresServer
from waiting import until

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "many-machines.md"
BLOCK = re.compile(r"^```(?:sh|py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PUBLISH, WORK, BESIDE, WRITE, READ = BLOCK.findall(PAGE.read_text())
_SUBMITS = """
import os
from steelyard.record import Record

for number in range(5):
    monitor.submit(Record(id=f"turn-{number}", question="Who found it?", answer="Curie found it."))
assert monitor.flush(60) == 0
print(monitor.stats().spooled, monitor.stats().evaluated, flush=True)
os._exit(0)
"""

_MOVES = """
import os, time

monitor.start()
while (counts := monitor.stats().fallback) is None or counts.pending:
    time.sleep(0.05)
os._exit(0)
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path)
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[PostgresServer]:
    if not PostgresServer.there():
        pytest.skip("needs Postgres: apt-get install postgresql")
    folder = tmp_path / "postgres"
    folder.mkdir()
    server = PostgresServer(folder)
    server.start()
    yield server
    server.stop()


def placed(example: str, places: Mapping[str, str]) -> str:
    """An example at the addresses of a test, each of which it must name."""
    for written, place in places.items():
        assert written in example
        example = example.replace(written, place)
    return example


def application(example: str, folder: Path, *, does: str = _SUBMITS, **variables: str) -> list[int]:
    """A program that begins as the example; of five turns, how many were stored and how many judged there."""
    command, env = ["-c", example + does], {**os.environ, **variables}
    done = programs.run(command, ours=True, cwd=folder, env=env, timeout=150)
    assert done.returncode == 0, done.stderr
    return [int(count) for count in done.stdout.split()]


def shell(example: str, folder: Path) -> subprocess.Popen[str]:
    """An example in a shell that has the packages already: `pip` has nothing to do there."""
    tools = folder / "bin"
    tools.mkdir()
    (tools / "pip").write_text("#!/bin/sh\n")
    (tools / "pip").chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.Popen(
        ["sh", "-e", "-c", example],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def results(folder: Path) -> int:
    try:
        with closing(sqlite3.connect(folder / "steelyard.db")) as db:
            (count,) = db.execute("SELECT COUNT(*) FROM evaluations").fetchone()
    except sqlite3.OperationalError:
        return 0
    return int(count)


def judged_by_the_worker(url: str, folder: Path) -> None:
    """The worker of the page judges five turns, until it is ended."""
    worker = shell(placed(WORK, {"nats://broker:4222": url}), folder)
    try:
        until(lambda: results(folder) == 5 or worker.poll() is not None)
        assert results(folder) == 5
    finally:
        os.killpg(worker.pid, signal.SIGTERM)
        said, _ = worker.communicate(timeout=60)
    # Ended the moment the rows stood there: the broker may not have been told of all of them yet.
    assert re.search(r"sqlite:steelyard\.db: 5 written, \d waiting, 0 lost", said), said


def test_a_worker_judges_what_an_application_publishes(broker: NatsServer, tmp_path: Path) -> None:
    url = broker.start().url
    assert application(placed(PUBLISH, {"nats://broker:4222": url}), tmp_path) == [5, 0]
    judged_by_the_worker(url, tmp_path)


def test_turns_wait_in_the_file_that_is_named_until_the_broker_is_there(
    broker: NatsServer, tmp_path: Path
) -> None:
    places = {"nats://broker:4222": broker.url, "/var/lib/app/turns.db": str(tmp_path / "turns.db")}
    begin = "from steelyard import Monitor\nfrom steelyard.online import SpoolSettings\n"
    example = f"{begin}{placed(BESIDE, places)}monitor = Monitor(spool=spool)\n"
    assert application(example, tmp_path) == [5, 0]
    broker.start()
    application(example, tmp_path, does=_MOVES)
    judged_by_the_worker(broker.url, tmp_path)


def test_a_report_reads_the_results_of_the_database(database: PostgresServer, tmp_path: Path) -> None:
    shown = database.new_database().replace(f":{database.password}", "")
    places = {"postgresql://steelyard@db/results": shown}
    assert application(placed(WRITE, places), tmp_path, PGPASSWORD=database.password) == [0, 5]
    command = shell(placed(READ, {**places, "PGPASSWORD=...": f"PGPASSWORD={database.password}"}), tmp_path)
    said, _ = command.communicate(timeout=150)
    assert command.returncode == 0, said
    assert "5 turns" in said
