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
from steelyard.online import Monitor, SpoolSettings

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
    assert "jsonl:results.jsonl 5" in said
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
