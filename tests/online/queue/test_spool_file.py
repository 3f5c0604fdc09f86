"""The spool's file: what is not ours is left alone, and what happens to ours is noticed."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import stat
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from online.helpers import FAITHFUL, finish, turn, yes
from steelyard._internal.forks import FileConnection
from steelyard.errors import ConfigurationError, JudgeUnavailable
from steelyard.online import Monitor, Spool, SpoolSettings
from steelyard.online.queue._protocol import QueueCounts
from steelyard.online.queue._sqlite import SQLiteQueue
from steelyard.online.queue._turns import Leased, Selected, Undelivered
from steelyard.questions import Reply, Request
from steelyard.record import Context, Record
from steelyard.scores import Evaluation
from steelyard.sinks import JSONLSink, SQLiteSink
from steelyard.testing import MemorySink, ScriptedJudge
from waiting import until

pytestmark = pytest.mark.faults
EMPTY = QueueCounts(accepted=0, pending=0, evaluated=0, dead={}, undelivered=0, bytes=0)


def database(path: Path, *, version: int = 0, identity: int = 0) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(f"PRAGMA application_id = {identity}")
        connection.commit()
    return path.read_bytes()


@pytest.mark.parametrize("version", [0, 2, 7])
def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "app.db"
    before = database(path, version=version)
    for make in (lambda: SpoolSettings(path=path), lambda: Spool(path)):
        with pytest.raises(ConfigurationError, match="another program"):
            make()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["app.db"]


def test_a_text_file_a_link_and_a_newer_spool_are_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database")
    link, dangling = tmp_path / "link.db", tmp_path / "dangling.db"
    link.symlink_to(text)
    dangling.symlink_to(tmp_path / "nowhere.db")
    newer = tmp_path / "newer.db"
    Spool(newer).close()
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 99")
    for path in (text, link, dangling, newer):
        with pytest.raises(ConfigurationError):
            Monitor(metrics=[], sinks=[], spool=path)
        with pytest.raises(ConfigurationError):
            Spool(path)
    assert text.read_text() == "not a database"
    assert not (tmp_path / "nowhere.db").exists()
    assert not [file for file in tmp_path.iterdir() if "damaged" in file.name]


def test_a_spool_of_an_older_version_is_taken_and_made_private(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    spool = Spool(path)
    spool.put([Selected(turn(name), 0.5, 1.0) for name in "ab"])
    [done] = spool.lease_turns(1)
    spool.finish(done, Evaluation(record_id="a", scores=()))
    spool.close()
    with closing(sqlite3.connect(path)) as connection:
        # Leases stood beside results.
        connection.execute("DELETE FROM parked")
        for column in ("lease TEXT", "lease_until REAL"):
            connection.execute(f"ALTER TABLE results ADD COLUMN {column}")
        connection.execute("UPDATE results SET lease_until = 0")
        connection.commit()
        connection.execute("PRAGMA user_version = 2")
        connection.execute("PRAGMA application_id = 0")
        # While somebody else has it open there are its logs, which hold turns as well.
        files = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")]
        for file in files:
            file.chmod(0o666)
        spool = Spool(SpoolSettings(path=path).path)
        assert spool.counts().pending == 1
        assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3
    [left] = spool.parked("", 8)
    spool.park([(left, ["away"])])
    spool.close()
    # What was handed on is not left behind again each time that the file is opened.
    spool = Spool(path)
    assert [len(spool.parked(sink, 8)) for sink in ("", "away")] == [0, 1]
    spool.close()


def test_the_path_is_fixed_when_the_monitor_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    monitor = Monitor(metrics=[], sinks=[], spool="s.db")
    monkeypatch.chdir(tmp_path / "other")
    finish(monitor, [turn()])
    monitor.close()
    assert (tmp_path / "s.db").exists()
    assert not list((tmp_path / "other").iterdir())


def test_turns_are_masked_before_they_are_stored(tmp_path: Path) -> None:
    def mask(record: Record) -> Record:
        return record.replace(answer=record.answer.replace("Marie Curie", "[name]"), contexts=())

    settings = SpoolSettings(path=tmp_path / "s.db", evaluate=False)
    monitor = Monitor(metrics=[], sinks=[], mask=mask, spool=settings)
    finish(monitor, [turn("a")])
    monitor.close()
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"[name] found polonium" in stored and b"Curie" not in stored


@pytest.mark.parametrize(
    ("before", "asked", "waits"),
    [(0, None, 5), (3, None, 40), (12, None, 600), (0, 1_200.0, 1_200), (0, 1e9, 3_600)],
    ids=["at first", "doubled", "at most", "as the server asks", "at most an hour"],
)
def test_a_turn_whose_judge_is_away_waits_in_the_spool(
    tmp_path: Path, before: int, asked: float | None, waits: float
) -> None:
    path = tmp_path / "s.db"
    Spool(path).put([Selected(turn("a"), 0.0, 1.0)])
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE turns SET postponed = ?", (before,))

    class Away(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            error = JudgeUnavailable("away", cause="unreachable")
            error.retry_after = asked
            raise error

    monitor = Monitor(metrics=FAITHFUL, judge=Away(yes), sinks=[], spool=path)
    earliest = time.monotonic()
    monitor.start()
    with closing(sqlite3.connect(path)) as file:
        while True:
            postponed, due = file.execute("SELECT postponed, not_before FROM turns").fetchone()
            if postponed > before:
                break
            assert time.monotonic() < earliest + 60
            time.sleep(0.01)
    assert earliest + waits <= due <= time.monotonic() + waits


def test_a_removed_spool_is_noticed_and_made_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, sink = tmp_path / "s.db", MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], spool=path)
    finish(monitor, [turn("before")])
    with caplog.at_level(logging.WARNING, "steelyard"):
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        finish(monitor, (turn(f"{number}") for number in range(20)))
        until(lambda: path.exists() and monitor.stats().spool is not None)
        finish(monitor, [turn("after")])
    assert len(sink.evaluations) == 22
    assert monitor.stats().spooled == 2
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


def test_flush_counts_what_a_spool_that_failed_has_kept(tmp_path: Path) -> None:
    path, release = tmp_path / "s.db", threading.Event()

    class Waits(ScriptedJudge):
        async def answer(self, request: Request) -> Reply:
            await asyncio.to_thread(release.wait, 50)
            return await super().answer(request)

    monitor = Monitor(metrics=FAITHFUL, judge=Waits(yes), sinks=[], spool=path, concurrency=1)
    for number in range(5):
        monitor.submit(turn(f"{number}"))
    until(lambda: (monitor.stats().spool or EMPTY).accepted == 5)
    path.rename(tmp_path / "away.db")
    path.mkdir()  # no spool can be made there
    release.set()
    until(lambda: monitor.stats().spool is None)
    started = time.monotonic()
    assert monitor.flush(100) >= 4
    assert time.monotonic() - started < 60


def test_one_unreadable_row_ends_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    spool = Spool(path)
    names = [str(number) for number in range(6)]
    assert spool.put([Selected(turn(name), 0.5, 1.0) for name in names]) == ["new"] * 6
    done = [one for one in spool.lease(2) if isinstance(one, Leased)]
    for leased in done:
        spool.finish(leased, Evaluation(record_id=leased.turn.record.id, scores=()))
    spool.release([])
    spool.close()
    with closing(sqlite3.connect(path)) as connection:
        deep = "[" * 100_000
        connection.execute("UPDATE turns SET body = ? WHERE record_id = '3'", (deep,))
        connection.execute("UPDATE turns SET body = '[]' WHERE record_id = '4'")
        connection.execute("UPDATE parked SET lease_until = 0")
        connection.execute("UPDATE results SET body = ? WHERE seq = 1", (deep,))
        connection.commit()
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], spool=path)
    monitor.start()
    until(lambda: monitor.stats().spool is not None)
    assert monitor.flush(60) == 0
    assert set(sink.by_record) == {"1", "2", "5"}
    counts = monitor.stats().spool
    assert counts is not None and counts.dead == {"unreadable": 2}
    assert counts.accepted == counts.pending + counts.evaluated + sum(counts.dead.values())


def test_a_surrogate_anywhere_is_repaired_or_refused_alone(tmp_path: Path) -> None:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink], spool=tmp_path / "s.db")
    monitor.submit(turn("odd", contexts_source="\ud800", contexts=(Context(text="x", id="\udfff"),)))
    finish(monitor, (turn(f"{number}") for number in range(10)))
    assert {str(number) for number in range(10)} <= set(sink.by_record)
    assert monitor.stats().spool is not None


@pytest.mark.parametrize("there", [False, True])
def test_spool_and_results_in_one_file_are_refused(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "steelyard.db"
    if there:
        Spool(path).close()
    for sink in (SQLiteSink(path), JSONLSink(path)):
        with pytest.raises(ConfigurationError, match="cannot share one file"):
            Monitor(metrics=[], sinks=[sink], spool=tmp_path / "." / "steelyard.db")
    assert path.exists() == there


def names(leased: list[Leased | Undelivered]) -> list[str]:
    return [one.turn.record.id for one in leased if isinstance(one, Leased)]


async def filled(path: Path, count: int, **settings: float) -> SQLiteQueue:
    queue = SQLiteQueue(SpoolSettings(path=path, **settings))  # type: ignore[arg-type]
    await queue.open()
    await queue.put([Selected(turn(id=f"{number:02}"), 0.5, 1.0) for number in range(count)])
    return queue


async def test_a_quarter_more_is_leased_and_handed_out_in_order(tmp_path: Path) -> None:
    queue = await filled(tmp_path / "turns.db", 20)
    other = SQLiteQueue(SpoolSettings(path=tmp_path / "turns.db"))
    await other.open()
    assert names(await queue.lease(8)) == [f"{number:02}" for number in range(8)]
    assert names(await other.lease(1)) == ["10"]
    assert [names(await queue.lease(1)) for _ in range(3)] == [["08"], ["09"], ["11"]]
    await queue.close()
    await other.close()


async def test_what_was_not_begun_is_given_back(tmp_path: Path) -> None:
    queue = await filled(tmp_path / "turns.db", 10)
    held = await queue.lease(8)
    assert len(held) == 8
    await queue.release(held)
    await queue.close()
    other = SQLiteQueue(SpoolSettings(path=tmp_path / "turns.db"))
    await other.open()
    assert len(await other.lease(20)) == 10
    await other.close()


async def test_what_was_not_begun_is_renewed(tmp_path: Path) -> None:
    queue = await filled(tmp_path / "turns.db", 10, lease_seconds=1.0)
    held = await queue.lease(8)
    other = SQLiteQueue(SpoolSettings(path=tmp_path / "turns.db", lease_seconds=1.0))
    await other.open()
    for _ in range(8):
        await asyncio.sleep(0.3)  # longer than a lease in all
        await queue.renew(held)
        assert await other.lease(20) == []
    await queue.close()
    await other.close()


def test_the_log_of_a_file_that_is_made_at_this_moment_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, others, remove = tmp_path / "x.db", list[threading.Thread](), FileConnection._remove_wal

    def connect() -> sqlite3.Connection:
        made = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("CREATE TABLE IF NOT EXISTS found (it)")
        return made

    files = [FileConnection(path, connect), FileConnection(path, connect)]

    def put(file: FileConnection) -> None:
        with file.use() as connection:
            connection.execute("INSERT INTO found VALUES (1)")

    def remove_late(file: FileConnection) -> None:
        """The other one begins to make the file between the look at it and the removal."""
        if not others:
            others.append(threading.Thread(target=put, args=(files[1],)))
            others[0].start()
            others[0].join(0.5)  # it waits, or is done
        remove(file)

    monkeypatch.setattr(FileConnection, "_remove_wal", remove_late)
    put(files[0])
    others[0].join()
    for file in files:
        file.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM found").fetchone() == (2,)
