"""`steelyard worker` on a broker, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import programs
from online.helpers import FAITHFUL, check_spool, finish, kind_judge, traced, turn
from servers import NatsServer, free_port
from sinks.vendor_server import VendorServer
from steelyard.online import Monitor, Spool, SpoolSettings
from steelyard.online.queue._turns import Selected
from steelyard.record import Context, Record
from steelyard.testing import MemorySink
from waiting import until


def worker(folder: Path, *options: str, **variables: str) -> programs.Program:
    env = {**os.environ, "STEELYARD_SINKS": "jsonl:results.jsonl", **variables}
    command = [*programs.STEELYARD, "worker", *options]
    return programs.start(command, ours=True, live=True, cwd=folder, env=env)


def test_a_worker_judges_what_is_on_the_broker_and_leaves(nats_server: NatsServer, tmp_path: Path) -> None:
    url = nats_server.queue()
    application = Monitor(
        metrics=FAITHFUL, judge=kind_judge(), sinks=[], spool=SpoolSettings(path=url, evaluate=False)
    )
    finish(application, (turn(str(number)) for number in range(5)))
    application.close()
    by_variable = worker(tmp_path, "--once", "--concurrency", "3", STEELYARD_SPOOL=url)
    _, said = by_variable.communicate(timeout=150)
    assert by_variable.returncode == 0, said
    assert "judging what comes into nats://127.0.0.1" in said
    assert "jsonl:results.jsonl: 5 written, 0 waiting, 0 lost" in said
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert {json.loads(line)["record_id"] for line in lines} == {"0", "1", "2", "3", "4"}


def test_with_once_a_worker_leaves_no_result_that_a_sink_takes_after_a_while(tmp_path: Path) -> None:
    settings = SpoolSettings(path=tmp_path / "turns.db", evaluate=False)
    application = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[], spool=settings)
    finish(application, [traced(1)])
    application.close()
    with VendorServer(lambda _: (503 if len(server.requests) <= 5 else 200, {})) as server:
        variables = {"STEELYARD_SINKS": "phoenix", "PHOENIX_COLLECTOR_ENDPOINT": server.url}
        _, said = worker(tmp_path, "--once", "--spool", "turns.db", **variables).communicate(timeout=150)
    assert "phoenix: 1 written, 0 waiting, 0 lost" in said, said


def test_a_worker_waits_for_a_broker_that_is_not_there_and_hides_its_password(tmp_path: Path) -> None:
    waiting = worker(tmp_path, "--queue", f"nats://me:hidden-word@127.0.0.1:{free_port()}")
    assert waiting.stderr is not None
    first, second = waiting.stderr.readline(), waiting.stderr.readline()
    waiting.send_signal(signal.SIGTERM)
    _, rest = waiting.communicate(timeout=150)
    assert waiting.returncode == 1  # what waits there was not judged
    assert first.startswith("waiting for nats://127.0.0.1:")
    assert "hidden-word" not in first + second + rest


def test_a_worker_that_is_refused_ends_at_once(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, ["--user", "somebody", "--pass", "right-word"]).start()
    refused = worker(tmp_path, "--queue", f"nats://somebody:hidden-word@127.0.0.1:{server.port}")
    _, said = refused.communicate(timeout=150)
    server.stop()
    assert refused.returncode == 2
    assert "refuses the credentials" in " ".join(said.split()) and "hidden-word" not in said


def test_with_once_a_worker_gives_up_after_a_minute_when_its_broker_is_away(tmp_path: Path) -> None:
    # A minute that takes a second, so that nobody has to wait for it.
    quicker = (
        "from steelyard.cli import main\n"
        "from steelyard.cli.commands import _queue\n"
        "_queue._PATIENCE /= 60\n"
        "assert _queue._PATIENCE == 1\n"
        "main()"
    )
    command = ["-c", quicker, "worker", "--once", "--queue", f"nats://127.0.0.1:{free_port()}"]
    env = {**os.environ, "STEELYARD_SINKS": "jsonl:results.jsonl"}
    left = programs.run(command, ours=True, cwd=tmp_path, env=env, timeout=150)
    assert left.returncode == 1, left.stderr
    assert "what is in it waits for the next worker" in left.stderr


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


@pytest.mark.parametrize(
    ("kind", "listens"), [("file", False), ("file", True), ("nats", True), ("rabbit", True)]
)
def test_a_worker_tells_what_waits_for_a_sink_and_the_queue_command_shows_it(
    kind: str, listens: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path = "turns.db" if kind == "file" else request.getfixturevalue(f"{kind}_server").queue()
    options = ("--spool" if kind == "file" else "--queue", path)
    settings = SpoolSettings(path=tmp_path / path if kind == "file" else path, evaluate=False)
    application = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[], spool=settings)
    finish(application, (turn(str(number)) for number in range(5)))
    application.close()
    # A server that listens and says nothing has the worker stopped in the middle of a write.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1] if listens else free_port()
        sinks = f"jsonl:results.jsonl,postgresql://nobody@127.0.0.1:{port}/none"
        written = tmp_path / "results.jsonl"
        working = worker(tmp_path, *options, STEELYARD_SINKS=sinks)
        until(lambda: shown(tmp_path, options, sinks).get("results that wait for sinks") == "5")
        until(lambda: written.exists() and written.read_text().count("\n") == 5)
        working.send_signal(signal.SIGTERM)
        _, said = working.communicate(timeout=150)
    assert working.returncode == 0, said
    assert "jsonl:results.jsonl: 5 written, 0 waiting, 0 lost" in said
    assert ": 0 written, 5 waiting, 0 lost" in said
    counts = shown(tmp_path, options, sinks)
    assert (counts["turns to judge"], counts["dead"]) == ("0", "0")
    # RabbitMQ keeps no count of what has been acknowledged.
    assert counts["judged"] == ("0" if kind == "rabbit" else "5")
    name = f"postgres:127.0.0.1:{port}/none"
    assert counts[f"  {name}"] == "5"
    # Whoever does not have this sink is told of it under another name, and can move it under that.
    others = shown(tmp_path, options, "jsonl:results.jsonl")
    if kind == "nats":
        [(_, told)] = [(count, told) for told, count in others.items() if told.startswith("  postgres")]
        dropped = queue(tmp_path, ("drop", "--sink", told.strip(), *options), sinks).stdout
        assert dropped == f"dropped: 5 that waited for {told.strip()}\n"


def queue(folder: Path, options: Sequence[str], sinks: str) -> subprocess.CompletedProcess[str]:
    return queue_command(folder, *options, STEELYARD_SINKS=sinks)


def shown(folder: Path, options: tuple[str, str], sinks: str) -> dict[str, str]:
    """What `steelyard queue` says."""
    done = queue(folder, options, sinks)
    return {line.split("\t")[0]: line.split("\t")[1] for line in done.stdout.splitlines()}


def test_two_sinks_of_one_name_are_told_apart() -> None:
    sinks = [MemorySink(), MemorySink()]
    monitor = Monitor(metrics=[], sinks=sinks)
    finish(monitor, [turn()])
    assert {name: counts.written for name, counts in monitor.stats().sinks.items()} == {
        "memory": 1,
        "memory#2": 1,
    }


def test_a_memory_queue_that_loses_results_says_how_many() -> None:
    class Down(MemorySink):
        async def write(self, evaluations: object) -> None:
            raise OSError("down")

    monitor = Monitor(metrics=[], sinks=[Down(name="down"), MemorySink()])
    for number in range(7):
        monitor.submit(turn(str(number)))
    assert monitor.flush(60) == 7
    # While the sink is left alone, too.
    for number in range(3):
        monitor.submit(turn(f"later {number}"))
    assert monitor.flush(10) == 3
    assert monitor.stats().sinks["down"].lost == 10
    assert monitor.flush(60) == 0


def test_a_worker_tries_bad_turns_again_with_the_functions_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "ferry.py").write_text(
        "def replay(question, contexts):\n"
        "    if len(contexts) == 2:\n"
        "        return 'The ferry to Skarn leaves at 4 in the morning.'\n"
        "    return contexts[0].text if contexts else 'Ask at the harbour office.'\n"
    )
    application = Monitor(
        metrics=FAITHFUL,
        judge=kind_judge(),
        sinks=[],
        spool=SpoolSettings(path=tmp_path / "turns.db", evaluate=False),
    )
    application.submit(
        Record(
            id="r1",
            question="When does the ferry to Skarn leave in the morning?",
            contexts=(
                Context(text="The ferry to Skarn leaves at 9 in the morning."),
                Context(text="A seat on the ferry costs 4 crowns."),
            ),
            answer="The ferry to Skarn leaves at 4 in the morning.",
        )
    )
    application.close()
    trying = worker(
        tmp_path, "--once", "--spool", "turns.db", "--replay", "ferry:replay", PYTHONPATH=str(tmp_path)
    )
    _, said = trying.communicate(timeout=150)
    assert trying.returncode == 0, said
    [result] = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    assert result["diagnosis"]["cause"] == "distracted"
    assert {trial["name"] for trial in result["diagnosis"]["trials"]} >= {"as it was", "closed book"}


def queue_command(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [*programs.STEELYARD, "queue", *options]
    return programs.run(command, ours=True, cwd=folder, env={**os.environ, **variables}, timeout=150)


def test_dead_letters_are_listed_replayed_and_dropped(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "turns.db")
    spool.put([Selected(turn(name), 0.0, 1.0) for name in ("first", "second", "third")])
    for leased in spool.lease_turns(3):
        spool.dead_letter(leased, "KeyError" if leased.turn.record.id == "second" else "poison")
    listed = queue_command(tmp_path, "list", "--spool", "turns.db")
    assert listed.stdout.splitlines() == ["poison\t1\tfirst", "KeyError\t1\tsecond", "poison\t1\tthird"]
    replayed = queue_command(tmp_path, "replay", "--spool", "turns.db", "--cause", "KeyError")
    assert replayed.stdout == "replayed: 1 (KeyError 1)\n"
    [leased] = spool.lease_turns(3)
    assert leased.turn.record.id == "second"
    assert queue_command(tmp_path, "drop", "--spool", "turns.db").stdout == "dropped: 2 (poison 2)\n"
    assert queue_command(tmp_path, "list", "--spool", "turns.db").stdout == ""
    shown = queue_command(tmp_path, "--spool", "turns.db").stdout
    assert "dead\t2" in shown and "  poison\t2" in shown
    spool.close()


def test_results_of_a_sink_that_was_renamed_are_handed_on(tmp_path: Path) -> None:
    class Away(MemorySink):
        async def write(self, evaluations: object) -> None:
            raise OSError("away")

    spool = SpoolSettings(path=tmp_path / "turns.db", max_bytes=15_000)
    before = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[Away(name="old\x1b]0;")], spool=spool)
    for number in range(100):
        before.submit(turn(str(number)))
    # Until results fill the file, so that nothing more is judged.
    until(lambda: before.stats().skipped.get("spool_full", 0) and not before.stats().pending)
    until(lambda: check_spool(before.stats()).waiting)
    before.close(0)
    [waiting] = check_spool(before.stats()).waiting.values()
    for wrong in (("move", "--sink", "old"), ("show", "--sink", "old"), ("drop", "--sink", "o", "--to", "n")):
        assert queue_command(tmp_path, *wrong, "--spool", "turns.db").returncode == 2
    moved = queue_command(tmp_path, "move", "--spool", "turns.db", "--sink", "old\x1b]0;", "--to", "new")
    assert moved.stdout.startswith(f"moved: {waiting} that waited for old") and "\x1b" not in moved.stdout
    after = MemorySink(name="new")
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[after], spool=spool)
    monitor.start()
    assert monitor.flush(60) == 0
    assert len(after.by_record) == check_spool(monitor.stats()).accepted > waiting > 0


def test_a_queue_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = queue_command(tmp_path, "--spool", "nothing.db")
    assert (missing.returncode, "there is no spool" in missing.stderr) == (2, True)
    assert not (tmp_path / "nothing.db").exists()
