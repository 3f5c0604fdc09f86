"""`steelyard worker` on a broker, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from online.helpers import FAITHFUL, kind_judge, turn
from servers import NatsServer, free_port
from steelyard.online import Monitor, Spool, SpoolSettings
from steelyard.online.queue._turns import Selected
from steelyard.testing import MemorySink
from waiting import until

STEELYARD = str(Path(sys.executable).with_name("steelyard"))


def worker(folder: Path, *options: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [STEELYARD, "worker", *options],
        cwd=folder,
        env={**os.environ, "STEELYARD_SINKS": "jsonl:results.jsonl", **variables},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_worker_judges_what_is_on_the_broker_and_leaves(nats_server: NatsServer, tmp_path: Path) -> None:
    url = nats_server.queue()
    application = Monitor(
        metrics=FAITHFUL, judge=kind_judge(), sinks=[], spool=SpoolSettings(path=url, evaluate=False)
    )
    for number in range(5):
        application.submit(turn(str(number)))
    assert application.flush(60) == 0
    application.close()
    by_variable = worker(tmp_path, "--once", "--concurrency", "3", STEELYARD_SPOOL=url)
    _, said = by_variable.communicate(timeout=150)
    assert by_variable.returncode == 0, said
    assert "judging what comes into nats://127.0.0.1" in said
    assert "jsonl:results.jsonl: 5 written, 0 waiting, 0 lost" in said
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert {json.loads(line)["record_id"] for line in lines} == {"0", "1", "2", "3", "4"}


def test_a_worker_waits_for_a_broker_that_is_not_there_and_hides_its_password(tmp_path: Path) -> None:
    waiting = worker(tmp_path, "--queue", f"nats://me:hidden-word@127.0.0.1:{free_port()}")
    assert waiting.stderr is not None
    first, second = waiting.stderr.readline(), waiting.stderr.readline()
    waiting.send_signal(signal.SIGTERM)
    _, rest = waiting.communicate(timeout=150)
    assert waiting.returncode == 1  # what waits there was not judged
    assert first.startswith("waiting for nats://127.0.0.1:")
    assert "hidden-word" not in first + second + rest


def test_with_once_a_worker_gives_up_after_a_minute_when_its_broker_is_away(tmp_path: Path) -> None:
    # A minute that takes a second, so that nobody has to wait for it.
    quicker = (
        "from steelyard.cli import main\n"
        "from steelyard.cli.commands.recording import _worker\n"
        "_worker._PATIENCE /= 60\n"
        "assert _worker._PATIENCE == 1\n"
        "main()"
    )
    leaving = subprocess.Popen(
        [sys.executable, "-c", quicker, "worker", "--once", "--queue", f"nats://127.0.0.1:{free_port()}"],
        cwd=tmp_path,
        env={**os.environ, "STEELYARD_SINKS": "jsonl:results.jsonl"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, said = leaving.communicate(timeout=150)
    finally:
        leaving.kill()
    assert leaving.returncode == 1, said
    assert "what is in it waits for the next worker" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "give --spool FILE or --queue URL"),
        (["--queue", "nats://h", "--spool", "s.db"], "not both"),
        (["--queue", "s.db"], "needs a broker's URL"),
        (["--queue", "redis://127.0.0.1"], "addresses begin with nats://"),
    ],
)
def test_a_worker_without_a_queue_says_what_it_needs(tmp_path: Path, options: list[str], words: str) -> None:
    refused = worker(tmp_path, *options)
    _, said = refused.communicate(timeout=150)
    assert refused.returncode == 2
    assert words in " ".join(said.split())


def test_a_worker_tells_what_waits_for_a_sink_and_the_queue_command_shows_it(tmp_path: Path) -> None:
    spool = tmp_path / "turns.db"
    Spool(spool).put([Selected(turn(str(number)), 0.0, 1.0) for number in range(5)])
    address = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    working = worker(tmp_path, "--spool", "turns.db", STEELYARD_SINKS=f"jsonl:results.jsonl,{address}")
    until(lambda: Path(spool).exists() and shown(tmp_path).get("results that wait for sinks") == "5")
    working.send_signal(signal.SIGTERM)
    _, said = working.communicate(timeout=150)
    assert working.returncode == 0, said
    assert "jsonl:results.jsonl: 5 written, 0 waiting, 0 lost" in said
    assert ": 0 written, 5 waiting, 0 lost" in said
    counts = shown(tmp_path)
    assert (counts["judged"], counts["turns to judge"], counts["dead"]) == ("5", "0", "0")


def shown(folder: Path) -> dict[str, str]:
    """What `steelyard queue` says."""
    done = subprocess.run(
        [STEELYARD, "queue", "--spool", "turns.db"], cwd=folder, capture_output=True, text=True, timeout=100
    )
    return {line.split("\t")[0]: line.split("\t")[1] for line in done.stdout.splitlines()}


def test_a_memory_queue_that_loses_results_says_how_many() -> None:
    class Down(MemorySink):
        async def write(self, evaluations: object) -> None:
            raise OSError("down")

    monitor = Monitor(metrics=[], sinks=[Down(name="down"), MemorySink()])
    for number in range(7):
        monitor.submit(turn(str(number)))
    assert monitor.flush(60) == 7
    assert monitor.stats().sinks["down"].lost == 7
    assert monitor.flush(60) == 0
    monitor.close()
