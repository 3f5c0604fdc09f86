"""The file beside a broker: no turn is lost, doubled or judged here while the broker cannot be used."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import programs
from online.helpers import FAITHFUL, check_law, kind_judge, turn
from servers import NatsServer, RabbitServer
from steelyard.errors import ConfigurationError, SinkError
from steelyard.online import Monitor, SpoolSettings, load_settings
from steelyard.online._options import choose_spool, spool_settings
from steelyard.scores import Evaluation
from steelyard.sinks import SQLiteSink
from steelyard.testing import MemorySink
from waiting import until

_HOST = """
import sys, time
from steelyard.online import Monitor, SpoolSettings
from steelyard.record import Record

url, file, first, last = sys.argv[1:]
spool = SpoolSettings(path=url, evaluate=False, fallback=file, lease_seconds=2.0)
monitor = Monitor(metrics=[], sinks=[], spool=spool)
monitor.start()
for number in range(int(first), int(last)):
    monitor.submit(Record(id=f"turn-{number}", question="Why?", answer="Because."))
while True:
    print(monitor.stats().spooled, flush=True)
    time.sleep(0.05)
"""


@pytest.fixture(params=["nats", pytest.param("rabbitmq", marks=pytest.mark.slow)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NatsServer | RabbitServer]:
    """A server that a test may stop; not started yet."""
    if request.param == "rabbitmq" and not RabbitServer.there():
        pytest.skip("needs RabbitMQ: apt-get install rabbitmq-server")
    made = NatsServer(tmp_path) if request.param == "nats" else RabbitServer(tmp_path)
    yield made
    made.stop(signal.SIGKILL)


def host(url: str, file: Path, max_bytes: int = 1024**2) -> Monitor:
    spool = SpoolSettings(path=url, evaluate=False, fallback=file, max_bytes=max_bytes)
    monitor = Monitor(metrics=[], sinks=[], spool=spool)
    monitor.start()
    return monitor


def killed_after(spooled: int, url: str, file: Path, numbers: range) -> None:
    """A host in a process of its own, killed once so many turns are stored, also if the test fails."""
    command = ["-c", _HOST, url, str(file), str(numbers.start), str(numbers.stop)]
    with programs.start(command, ours=True, live=True) as process:
        try:
            assert process.stdout is not None
            assert any(line == f"{spooled}\n" for line in process.stdout)
        finally:
            process.kill()


def waiting(monitor: Monitor) -> int:
    counts = monitor.stats().fallback
    return counts.pending if counts else -1


def submit(monitor: Monitor, numbers: range) -> None:
    for number in numbers:
        monitor.submit(turn(f"turn-{number}"))


def judged(url: str, store: Path, count: int) -> None:
    """Have a worker judge what the broker holds; the store then has each turn once."""
    worker = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[SQLiteSink(store)], spool=url)
    worker.start()
    until(lambda: len(stored(store)) >= count)
    assert worker.flush(30) == 0
    worker.close()
    assert sorted(stored(store)) == sorted(f"turn-{number}" for number in range(count))


def stored(store: Path) -> list[str]:
    if not store.exists():
        return []
    with closing(sqlite3.connect(store)) as db:
        try:
            return [record_id for (record_id,) in db.execute("SELECT record_id FROM evaluations")]
        except sqlite3.OperationalError:
            return []  # not made yet


def test_turns_wait_in_the_file_while_the_broker_is_down_and_all_reach_it(
    server: NatsServer | RabbitServer, tmp_path: Path
) -> None:
    url, file = server.queue(), tmp_path / "turns.db"
    monitor = host(url, file)
    submit(monitor, range(100))
    until(lambda: waiting(monitor) == 100)
    assert monitor.flush(60) == 0
    server.start()
    until(lambda: waiting(monitor) == 0)
    submit(monitor, range(100, 150))
    assert monitor.flush(30) == 0
    server.stop(signal.SIGKILL)
    submit(monitor, range(150, 200))
    until(lambda: monitor.stats().spooled == 200)
    assert waiting(monitor) == 50
    server.start()
    until(lambda: waiting(monitor) == 0)
    judged(url, tmp_path / "steelyard.db", 200)
    stats = monitor.stats()
    assert (stats.evaluated, stats.spooled, stats.skipped) == (0, 200, {})
    check_law(stats)
    monitor.close()


def test_a_host_that_judges_loses_nothing_while_broker_and_sink_are_away(tmp_path: Path) -> None:
    class Away(MemorySink):
        async def write(self, evaluations: Sequence[Evaluation]) -> None:
            if not there.is_set():
                raise SinkError("it cannot be reached", cause="unreachable")
            await super().write(evaluations)

    there, sink, server = threading.Event(), Away(), NatsServer(tmp_path)
    spool = SpoolSettings(path=server.queue(), fallback=tmp_path / "turns.db")
    monitor = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[sink], spool=spool)
    monitor.start()
    try:
        submit(monitor, range(30))
        until(lambda: waiting(monitor) == 30)
        assert monitor.flush(0.1) == 30
        server.start()
        until(lambda: waiting(monitor) == 0)
        there.set()
        assert monitor.flush(60) == 0
        assert sorted(one.record_id for one in sink.evaluations) == sorted(f"turn-{n}" for n in range(30))
        assert monitor.stats().sinks["memory"].lost == 0
    finally:
        monitor.close(1)
        server.stop(signal.SIGKILL)


def test_a_host_that_was_killed_leaves_its_turns_in_the_file_for_the_next(
    server: NatsServer | RabbitServer, tmp_path: Path
) -> None:
    url, file = server.queue(), tmp_path / "turns.db"
    killed_after(80, url, file, range(80))
    server.start()
    # Killed while it moves them, too: what it had leased comes when its lease ends.
    killed_after(40, url, file, range(80, 120))
    monitor = host(url, file)
    until(lambda: waiting(monitor) == 0)
    judged(url, tmp_path / "steelyard.db", 120)
    monitor.close()


def test_a_broker_that_stalls_holds_up_nobody_and_takes_nothing_twice(
    nats_with: Callable[..., NatsServer], tmp_path: Path
) -> None:
    server = nats_with()
    url, file = server.queue(), tmp_path / "turns.db"
    monitor = host(url, file)
    submit(monitor, range(20))
    assert monitor.flush(30) == 0
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)
    submit(monitor, range(20, 60))
    until(lambda: monitor.stats().spooled == 60)
    assert waiting(monitor) == 40
    server.process.send_signal(signal.SIGCONT)
    until(lambda: waiting(monitor) == 0)
    until(lambda: (counts := monitor.stats().spool) is not None and counts.accepted == 60)
    judged(url, tmp_path / "steelyard.db", 60)
    monitor.close()


def test_what_a_full_broker_refuses_waits_in_the_file_until_there_is_room(
    nats_with: Callable[..., NatsServer], tmp_path: Path
) -> None:
    server = nats_with()
    url, file = server.queue(), tmp_path / "turns.db"
    monitor = host(url, file, max_bytes=20_000)
    submit(monitor, range(50))
    assert monitor.flush(30) == 0
    assert 0 < waiting(monitor) < 50
    assert monitor.stats().skipped == {}
    judged(url, tmp_path / "steelyard.db", 50)
    monitor.close()


def test_what_fits_nowhere_is_skipped_as_unavailable(tmp_path: Path) -> None:
    monitor = host("nats://127.0.0.1:9", tmp_path / "turns.db", max_bytes=5000)
    submit(monitor, range(50))
    assert monitor.flush(10) == 0
    stats = monitor.stats()
    assert stats.spooled == waiting(monitor) > 0
    assert stats.skipped == {"queue_unavailable": 50 - stats.spooled}
    check_law(stats)
    monitor.close()


def test_wrong_credentials_are_an_outage_too(nats_with: Callable[..., NatsServer], tmp_path: Path) -> None:
    server = nats_with(["--user", "somebody", "--pass", "right"])
    monitor = host(f"nats://somebody:wrong@127.0.0.1:{server.port}", tmp_path / "turns.db")
    submit(monitor, range(10))
    until(lambda: waiting(monitor) == 10)
    monitor.close()
    again = host(f"nats://somebody:right@127.0.0.1:{server.port}", tmp_path / "turns.db")
    until(lambda: waiting(again) == 0)
    again.close()


def test_a_variable_names_the_file_and_a_worker_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "turns.db")
    for entry, value in (("PATH", "nats://127.0.0.1:9"), ("EVALUATE", "false"), ("FALLBACK", file)):
        monkeypatch.setenv(f"STEELYARD_SPOOL__{entry}", value)
    chosen, worker = choose_spool(load_settings().settings, None), spool_settings()
    assert chosen is not None
    assert chosen.beside is not None
    assert (str(chosen.beside.path), chosen.beside.evaluate) == (file, False)
    assert worker is not None
    assert (worker.evaluate, worker.beside) == (True, None)


@pytest.mark.parametrize(
    "made",
    [
        lambda folder: SpoolSettings(path=folder / "s.db", evaluate=False, fallback=folder / "f.db"),
        lambda folder: SpoolSettings(path="nats://h", evaluate=False, fallback="amqp://h"),
        lambda folder: SpoolSettings(path="nats://h", evaluate=False, fallback=folder / "no" / "f.db"),
        lambda folder: Monitor(
            sinks=[SQLiteSink(folder / "f.db")],
            spool=SpoolSettings(path="nats://h", evaluate=False, fallback=folder / "f.db"),
        ),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(made: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        made(tmp_path)


def test_the_file_beside_a_broker_has_the_bounds_of_the_spool(tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_bytes": 5_000_000, "lease_seconds": 77.0}
    spool = SpoolSettings(path="nats://127.0.0.1:4222", fallback=tmp_path / "f.db", **options)
    assert spool.beside == SpoolSettings(path=tmp_path / "f.db", evaluate=False, **options)
