from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import steelyard
from sinks.making import TRACE, make_evaluation, make_score
from steelyard.errors import ConfigurationError
from steelyard.online import Monitor
from steelyard.record import Record
from steelyard.results import connect_readonly
from steelyard.results._sqlite_file import prepare
from steelyard.sinks import SQLiteSink, read_evaluations
from writing import write


def test_rows_have_what_a_dashboard_asks_for(tmp_path: Path) -> None:
    write(tmp_path / "x.db", make_evaluation("a"))
    with connect_readonly(tmp_path / "x.db") as connection:
        connection.row_factory = sqlite3.Row
        evaluation = dict(connection.execute("SELECT * FROM evaluations").fetchone())
        scored, failure = map(dict, connection.execute("SELECT * FROM scores ORDER BY position"))
    connection.close()
    assert evaluation["question"] == "What did Marie Curie win?"
    assert evaluation["answer"].startswith("Marie Curie won")
    assert (evaluation["trace_id"], evaluation["span_id"]) == (TRACE.trace_id, TRACE.span_id)
    assert (evaluation["prompt_tokens"], evaluation["cost"]) == (500, 0.002)
    assert (scored["value"], scored["passed"], scored["threshold"]) == (0.75, 1, 0.5)
    assert (scored["inclusion_probability"], scored["judge"]) == (0.1, "local-lexical")
    assert (failure["value"], failure["status"], failure["cause"]) == (None, "failed", "timeout")


def test_the_same_result_again_replaces_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    write(path, make_evaluation("a", make_score(value=0.75)))
    write(path, make_evaluation("a", make_score(value=0.25)), make_evaluation("a", make_score(value=0.5)))
    (only,) = read_evaluations(path)
    assert only["faithfulness"].value == 0.5
    assert len(only.scores) == 1


def test_results_of_another_judge_stand_beside_the_first(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    write(path, make_evaluation("a", make_score(id="one")))
    write(path, make_evaluation("a", make_score(id="two", value=0.1)))
    (only,) = read_evaluations(path)
    assert [score.value for score in only.scores] == [0.75, 0.1]


def test_without_a_record_no_content_is_in_the_evaluations_table(tmp_path: Path) -> None:
    write(tmp_path / "x.db", make_evaluation("a", make_score(verdicts=()), record=None))
    assert b"Curie" not in (tmp_path / "x.db").read_bytes()
    (only,) = read_evaluations(tmp_path / "x.db")
    assert only.record is None


def test_filters(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    write(
        path,
        make_evaluation("a", make_score("m", id="1"), make_score("n", id="2"), evaluated_at=10),
        make_evaluation("b", make_score("n", id="3"), evaluated_at=20, trace=None),
        make_evaluation("c", make_score("n", id="4"), evaluated_at=30, trace=None),
    )

    def ids(**options: object) -> list[str]:
        return [one.record_id for one in read_evaluations(path, **options)]  # type: ignore[arg-type]

    assert ids() == ["a", "b", "c"]
    assert ids(newest_first=True, limit=2) == ["c", "b"]
    assert ids(since=20) == ["b", "c"]
    assert ids(until=20) == ["a"]
    assert ids(trace_id=TRACE.trace_id) == ["a"]
    assert ids(limit=0) == []
    assert [[s.metric for s in one.scores] for one in read_evaluations(path, metric="m")] == [["m"]]


def test_readers_and_other_writers_go_on_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    write(path, make_evaluation("a"))
    reader = read_evaluations(path)
    next(reader)
    write(path, make_evaluation("b"))
    assert [one.record_id for one in read_evaluations(path)] == ["a", "b"]
    reader.close()  # type: ignore[attr-defined]


def test_a_write_waits_for_another_writer_and_lets_the_loop_run(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    write(path, make_evaluation("a"))
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    async def run() -> int:
        ticks = 0
        sink = SQLiteSink(path)
        writing = asyncio.create_task(sink.write([make_evaluation("b")]))
        while not writing.done():
            await asyncio.sleep(0.01)
            ticks += 1
            if ticks == 3:
                other.execute("COMMIT")
        await writing
        await sink.aclose()
        return ticks

    assert asyncio.run(run()) >= 3
    other.close()
    assert [one.record_id for one in read_evaluations(path)] == ["a", "b"]


def test_a_lock_that_stays_is_an_error_and_nothing_is_half_written(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    write(path, make_evaluation("a"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        asyncio.run(SQLiteSink(path, lock_timeout=0.1).write([make_evaluation("b")]))
    other.close()
    assert [one.record_id for one in read_evaluations(path)] == ["a"]


def test_two_processes_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    errors: list[BaseException] = []

    def many(name: str) -> None:
        try:
            for number in range(30):
                write(path, make_evaluation(f"{name}{number}", make_score(id=f"{name}{number}")))
        except BaseException as error:  # noqa: BLE001 - shown by the assertion
            errors.append(error)

    threads = [threading.Thread(target=many, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sum(1 for _ in read_evaluations(path)) == 60


@pytest.mark.parametrize("moment", range(6))
def test_a_file_that_another_process_is_just_making_is_ours(tmp_path: Path, moment: int) -> None:
    """Whatever is read before and after the tables are there."""
    path = tmp_path / "x.db"

    class Overtaken(sqlite3.Connection):
        read = 0

        def execute(self, *args: Any) -> sqlite3.Cursor:
            if self.read == moment:
                write(path, make_evaluation("first"))
            self.read += 1
            return super().execute(*args)

    path.touch()
    with contextlib.closing(sqlite3.connect(path, factory=Overtaken, isolation_level=None)) as connection:
        prepare(connection, str(path))
    write(path, make_evaluation("second"))
    assert len(list(read_evaluations(path))) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_a_connection_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    sink = SQLiteSink(path)
    asyncio.run(sink.write([make_evaluation("parent")]))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(sink.write([make_evaluation("child", evaluated_at=1.8e9)]))
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    asyncio.run(sink.write([make_evaluation("again", evaluated_at=1.9e9)]))
    asyncio.run(sink.aclose())
    assert [one.record_id for one in read_evaluations(path)] == ["parent", "child", "again"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_a_transaction(tmp_path: Path) -> None:
    sink = SQLiteSink(tmp_path / "x.db")
    asyncio.run(sink.write([make_evaluation("parent")]))
    writing = threading.Event()

    def write_slowly() -> None:
        with sink._file.use() as connection:
            connection.execute("BEGIN IMMEDIATE")
            writing.set()
            time.sleep(0.3)
            connection.execute("COMMIT")

    thread = threading.Thread(target=write_slowly)
    thread.start()
    writing.wait(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(sink.write([make_evaluation("child")]))
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert {one.record_id for one in read_evaluations(tmp_path / "x.db")} == {"parent", "child"}


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="results cannot be written"):
        SQLiteSink(tmp_path).open()


def test_a_full_disk_is_an_error_and_nothing_is_half_written(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    sink = SQLiteSink(path)
    asyncio.run(sink.write([make_evaluation("a")]))
    # The same error that SQLite gives on a full disk, without filling one.
    with sink._file.use() as connection:
        connection.execute("PRAGMA max_page_count = 20")
    many = [make_evaluation(f"r{n}", make_score(id=str(n))) for n in range(500)]
    with pytest.raises(sqlite3.OperationalError, match="disk is full"):
        asyncio.run(sink.write(many))
    asyncio.run(sink.aclose())
    assert [one.record_id for one in read_evaluations(path)] == ["a"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere/x\.db.*folder that can be written"):
        SQLiteSink(tmp_path / "nowhere" / "x.db").open()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_is_read_only_is_named_and_its_results_can_still_be_read(tmp_path: Path) -> None:
    write(tmp_path / "x.db", make_evaluation("a"))
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ConfigurationError, match="folder that can be written"):
            SQLiteSink(tmp_path / "y.db").open()
        assert [one.record_id for one in read_evaluations(tmp_path / "x.db")] == ["a"]
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("meanwhile", ["removed", "moved", "another program's"])
def test_a_file_that_is_removed_or_replaced_while_it_is_written_is_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, meanwhile: str
) -> None:
    path = tmp_path / "x.db"
    sink = SQLiteSink(path)
    asyncio.run(sink.write([make_evaluation("before")]))
    if meanwhile == "removed":
        for file in tmp_path.iterdir():
            file.unlink()
    else:
        path.rename(tmp_path / "elsewhere.db")
    if meanwhile == "another program's":
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE mine (x)")
        with pytest.raises(ConfigurationError, match="another program"):
            asyncio.run(sink.write([make_evaluation("after")]))
        path.unlink()
    asyncio.run(sink.write([make_evaluation("after")]))
    asyncio.run(sink.aclose())
    assert [evaluation.record_id for evaluation in read_evaluations(path)] == ["after"]
    assert caplog.text.count("removed or replaced") == 1


@pytest.mark.parametrize("in_its_place", [False, True])
def test_a_file_that_is_moved_keeps_its_results_and_gives_none_to_the_next_of_its_name(
    tmp_path: Path, in_its_place: bool
) -> None:
    path, moved, other = tmp_path / "x.db", tmp_path / "moved.db", tmp_path / "other.db"
    write(other, make_evaluation("other's"))
    sinks = [SQLiteSink(path), SQLiteSink(path)]
    for number, sink in enumerate(sinks):
        asyncio.run(sink.write([make_evaluation(f"before {number}")]))
    path.rename(moved)
    if in_its_place:
        other.rename(path)
    for number, sink in enumerate(sinks):
        asyncio.run(sink.write([make_evaluation(f"after {number}")]))
        asyncio.run(sink.aclose())
    assert {one.record_id for one in read_evaluations(moved)} == {"before 0", "before 1"}
    there = {"after 0", "after 1"} | ({"other's"} if in_its_place else set())
    assert {one.record_id for one in read_evaluations(path)} == there


_WRITER = """
import asyncio, contextlib, sqlite3, sys
from sinks.making import make_evaluation, make_score
from steelyard.errors import ConfigurationError
from steelyard.sinks import SQLiteSink

async def main():
    sink = SQLiteSink(sys.argv[1])
    for number in range(30):
        while sink.counts.written <= number:  # as a Monitor tries again
            with contextlib.suppress(ConfigurationError, sqlite3.Error):
                await sink.write([make_evaluation(f"{sys.argv[2]}-{number}", make_score())])
            await asyncio.sleep(0.02)
    await sink.aclose()

asyncio.run(main())
"""


def test_a_file_that_is_moved_while_processes_write_it_loses_nothing(tmp_path: Path) -> None:
    path, moved = tmp_path / "x.db", list[Path]()
    command = [sys.executable, "-c", _WRITER, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    writers = [subprocess.Popen([*command, name], env=environment) for name in "abc"]
    while any(writer.poll() is None for writer in writers):
        time.sleep(0.3)
        if path.exists():
            moved.append(path.rename(tmp_path / f"moved {len(moved)}.db"))
    assert len(moved) > 1 and [writer.returncode for writer in writers] == [0, 0, 0]
    found = list[str]()
    for file in filter(Path.exists, (*moved, path)):
        with contextlib.suppress(ConfigurationError):  # moved before it had a table
            found += [one.record_id for one in read_evaluations(file)]
    assert sorted(found) == sorted(f"{name}-{number}" for name in "abc" for number in range(30))


def test_a_results_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no results file .*missing\.db"):
        next(read_evaluations(tmp_path / "missing.db"))


def test_wrong_timeout() -> None:
    with pytest.raises(ConfigurationError, match="-1"):
        SQLiteSink(lock_timeout=-1)


def test_sql_has_no_numbered_parameters() -> None:
    """Python 3.12 warns of them where values are given in order, and 3.14 refuses them."""
    sources = Path(steelyard.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if re.search(r"(?<!\()\?[1-9]\b", path.read_text("utf-8"))] == []


def test_sinks_of_one_file_in_one_process_take_turns_at_it(tmp_path: Path) -> None:
    path, problems = tmp_path / "x.db", list[Exception]()
    # Without patience: a sink that met another one within SQLite would lose what it has.
    sinks = [SQLiteSink(path, lock_timeout=0) for _ in range(8)]
    sinks[0].open()

    def writing(number: int) -> None:
        try:
            for count in range(30):
                asyncio.run(sinks[number].write([make_evaluation(f"{number}-{count}")]))
        except Exception as error:  # noqa: BLE001 - kept for the test
            problems.append(error)

    threads = [threading.Thread(target=writing, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    for sink in sinks[1:]:
        asyncio.run(sink.aclose())
    asyncio.run(sinks[0].write([make_evaluation("after the others were closed")]))
    assert len(list(read_evaluations(path))) == 241
    wal = path.with_name("x.db-wal")
    assert wal.exists()
    asyncio.run(sinks[0].aclose())
    # The last one has closed the file.
    assert not wal.exists()


def test_the_last_counts_wait_for_another_writer(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    monitor = Monitor(metrics=[], sinks=[SQLiteSink(path)])
    monitor.submit(Record(question="q", answer="a"))
    assert monitor.flush(100) == 0
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        ending = threading.Timer(0.3, other.rollback)
        ending.start()
        monitor.close(100)
        ending.join()
        ((counts,),) = other.execute("SELECT counts FROM ledger").fetchall()
    assert json.loads(counts)["evaluated"] == 1
