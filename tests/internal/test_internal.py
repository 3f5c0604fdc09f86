"""The primitives that all rooms share."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import logging
import os
import sqlite3
import stat
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from report.parts import results, turn
from steelyard._internal.bounded import BoundedDict
from steelyard._internal.forks import FileConnection, transaction
from steelyard._internal.lazy import lazy_exports
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.loops import CpuThrottle, PerLoop, PerLoopSemaphore
from steelyard._internal.threads import DaemonExecutor, ExitInThread, LoopThread, ThreadHangs
from steelyard.cli._app import build
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.golden import Case, GoldenSet, Run
from waiting import until


def test_the_oldest_entries_go_first() -> None:
    gone: list[str] = []
    kept: BoundedDict[str, int] = BoundedDict(max_items=2, forgotten=lambda key, _: gone.append(key))
    kept["a"], kept["b"], kept["a"], kept["c"] = 1, 2, 3, 4
    assert dict(kept) == {"a": 3, "c": 4}
    assert gone == ["b"]


def test_the_weight_is_bounded_and_follows_every_change() -> None:
    kept: BoundedDict[str, str] = BoundedDict(max_items=9, max_weight=5, weigh=len)
    kept["a"], kept["b"] = "xxx", "yy"
    assert kept.weight == 5
    kept["a"] = "x"
    assert kept.weight == 3
    kept["c"] = "zzzz"
    assert dict(kept) == {"a": "x", "c": "zzzz"}
    kept["e"] = "eeeee"  # one that is heavy takes the room of several
    assert dict(kept) == {"e": "eeeee"}
    del kept["e"]
    kept["a"], kept["c"] = "x", "zzzz"
    del kept["c"]
    assert (kept.pop("a"), kept.weight, len(kept)) == ("x", 0, 0)
    kept["d"] = "too heavy"
    assert len(kept) == kept.weight == 0


def test_a_bounded_dict_can_be_filled_from_several_threads() -> None:
    kept: BoundedDict[int, None] = BoundedDict(max_items=10)

    def fill(start: int) -> None:
        for number in range(start, start + 5000):
            kept[number] = None

    threads = [threading.Thread(target=fill, args=(start,)) for start in (0, 10_000, 20_000, 30_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept) == 10


def test_a_log_line_names_the_place_that_wrote_it(caplog: pytest.LogCaptureFixture) -> None:
    log = SafeLogger("steelyard.test")
    log.warning("one %s", "two")
    log.log(logging.ERROR, "three", stacklevel=1)
    places = [(record.filename, record.funcName, record.getMessage()) for record in caplog.records]
    here = "test_a_log_line_names_the_place_that_wrote_it"
    assert places == [("test_internal.py", here, "one two"), ("test_internal.py", here, "three")]


def test_a_problem_is_logged_once_for_each_kind_and_owner(caplog: pytest.LogCaptureFixture) -> None:
    first, second = (
        WarnOnce(SafeLogger("steelyard.test")),
        WarnOnce(SafeLogger("steelyard.test")),
    )
    assert first("full", "the %s is full", "disk")
    assert not first("full", "the %s is full", "disk")
    assert first("slow", "slow", level=logging.ERROR)
    assert second("full", "the %s is full", "tape")
    assert caplog.messages == ["the disk is full", "slow", "the tape is full"]
    assert [line.levelno for line in caplog.records] == [logging.WARNING, logging.ERROR, logging.WARNING]


def test_each_loop_has_an_object_of_its_own_which_goes_with_the_loop() -> None:
    class Thing:
        pass

    things = PerLoop(Thing)

    async def same() -> weakref.ref[Thing]:
        assert things.here() is things.here()
        return weakref.ref(things.here())

    first, second = asyncio.run(same()), asyncio.run(same())
    gc.collect()
    assert first() is None
    assert second() is None


def test_a_semaphore_works_in_one_loop_after_another() -> None:
    semaphore = PerLoopSemaphore(1)

    async def contend() -> None:
        async def hold() -> None:
            async with semaphore.here():
                await asyncio.sleep(0)

        await asyncio.gather(hold(), hold(), hold())

    asyncio.run(contend())
    asyncio.run(contend())
    with pytest.raises(ConfigurationError, match="at least 1"):
        PerLoopSemaphore(0)


def test_a_lazy_name_is_imported_when_it_is_used() -> None:
    getattribute, directory = lazy_exports(
        __name__,
        {"OrderedDict": "collections", "Thing": "a_package.thing"},
        extras={"a_package": ("dist", "extra")},
    )
    assert getattribute("OrderedDict").__name__ == "OrderedDict"
    assert {"OrderedDict", "Thing", "lazy_exports"} <= set(directory())
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        getattribute("other")
    with pytest.raises(MissingDependency, match=r"steelyard\[extra\]"):
        getattribute("Thing")


async def hang(executor: DaemonExecutor, release: threading.Event) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await executor.run(release.wait)


async def test_until_hung_calls_return_no_thread_is_left() -> None:
    executor, release = DaemonExecutor(1, name="test"), threading.Event()
    await hang(executor, release)
    with pytest.raises(ThreadHangs):
        await executor.run(int)
    release.set()
    while True:
        try:
            assert await executor.run(int) == 0
            break
        except ThreadHangs:
            await asyncio.sleep(0.01)
    executor.shutdown()


async def test_a_thread_that_hangs_is_replaced_while_there_are_spares() -> None:
    executor, release = DaemonExecutor(1, name="test", spares=2), threading.Event()
    await hang(executor, release)
    await hang(executor, release)
    assert await executor.run(int) == 0
    await hang(executor, release)
    with pytest.raises(ThreadHangs):
        await executor.run(int)
    release.set()
    executor.shutdown()


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
async def test_a_call_that_wants_to_exit_does_not_end_the_loop(kind: type[BaseException]) -> None:
    def leave() -> None:
        raise kind

    executor = DaemonExecutor(1, name="test")
    with pytest.raises(ExitInThread, match=kind.__name__):
        await executor.run(leave)
    assert await executor.run(int) == 0
    executor.shutdown()


def test_the_threads_of_an_executor_that_is_forgotten_end() -> None:
    executor = DaemonExecutor(3, name="forgotten")
    executor.submit(int).result(120)
    threads = [one for one in threading.enumerate() if one.name.startswith("forgotten")]
    assert len(threads) == 3
    del executor
    gc.collect()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_a_loop_thread_runs_until_it_is_joined() -> None:
    began, ended = threading.Event(), threading.Event()

    async def main() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    thread = LoopThread(main, name="test-loop")
    thread.start()
    assert began.wait(120)
    assert not thread.current
    assert thread.join(60)
    assert ended.is_set()
    thread.call(lambda: None)


def test_a_loop_thread_is_one_thread_until_something_blocks() -> None:
    found: list[int] = []

    def helpers() -> int:
        return sum(one.name.startswith("test-loop-io") for one in threading.enumerate())

    async def main() -> None:
        found.append(helpers())
        found.append(await asyncio.to_thread(helpers))

    thread = LoopThread(main, name="test-loop")
    thread.start()
    until(lambda: thread.ended)
    assert found == [0, 1]


def test_where_threads_are_refused_the_loop_itself_does_what_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    async def main() -> None:
        def refused(thread: threading.Thread) -> None:
            raise RuntimeError("can't create new thread at interpreter shutdown")

        monkeypatch.setattr(threading.Thread, "start", refused)
        try:
            found.append(await asyncio.to_thread(threading.get_ident))
        finally:
            monkeypatch.undo()
        found.append(threading.get_ident())

    thread = LoopThread(main, name="test-loop")
    thread.start()
    until(lambda: thread.ended)
    assert len(found) == 2 and found[0] == found[1]


def test_a_loop_thread_that_hangs_is_not_waited_for() -> None:
    began, release = threading.Event(), threading.Event()

    async def main() -> None:
        began.set()
        release.wait()

    thread = LoopThread(main, name="test-loop")
    thread.start()
    assert began.wait(120)
    started = time.monotonic()
    assert not thread.join(0.05)
    assert time.monotonic() - started < 60
    release.set()
    assert thread.join(60)


def test_a_transaction_that_fails_leaves_nothing_and_holds_up_no_other() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE names (name TEXT)")
        for name in ("lost", "kept"):
            try:
                with transaction(db):
                    db.execute("INSERT INTO names VALUES (?)", (name,))
                    if name == "lost":
                        raise KeyboardInterrupt
            except KeyboardInterrupt:
                pass
        assert db.execute("SELECT name FROM names").fetchall() == [("kept",)]


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")


def a_golden_set(path: Path) -> None:
    GoldenSet(name="set", cases=(Case(id="1", question="Who is ill?"),)).save(path)


def a_run(path: Path) -> None:
    Run(golden="set", version="1", app="a:b", judge="local", cases=()).save(path)


def exported_labels(path: Path) -> None:
    db = path.with_name("results.db")
    results(db, [turn(1, 0.5)])
    assert CliRunner().invoke(build(), ["labels", "export", f"{path}", "--db", f"{db}"]).exit_code == 0


def scores(path: Path) -> None:
    turns = path.with_name("turns.jsonl")
    turns.write_text(json.dumps({"question": "Who is ill?", "contexts": ["Ann is."], "answer": "Ann is."}))
    assert CliRunner().invoke(build(), ["score", f"{turns}", "--out", f"{path}"]).exit_code == 0


@pytest.mark.parametrize("write", [a_golden_set, a_run, exported_labels, scores])
def test_a_new_file_of_texts_is_for_its_owner_alone(write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    before = os.umask(0)
    try:
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        # Whoever gave others the right has said so, and a later writing keeps it.
        path.chmod(0o644)
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    finally:
        os.umask(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_library_that_forks_untold_costs_a_child_only_the_file_that_was_in_use(tmp_path: Path) -> None:
    idle, busy = (
        FileConnection(path, partial(sqlite3.connect, path, check_same_thread=False))
        for path in (tmp_path / "idle.db", tmp_path / "busy.db")
    )
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with busy.use():
            held.set()
            over.wait(60)

    def works(file: FileConnection) -> bool:
        try:
            with file.use() as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS found (it)")
        except sqlite3.OperationalError:
            return False
        return True

    assert works(idle)
    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        os._exit(0 if (works(busy), works(idle)) == (False, True) else 1)
    over.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("how", ["done", "raised", "cancelled"])
def test_small_work_that_has_ended_holds_up_no_large_one(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slept, sleep = list[float](), asyncio.sleep

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    def steps(count: int, error: type[Exception] | None = None) -> Generator[None, None, None]:
        for _ in range(count):
            until = time.thread_time() + 0.002
            while time.thread_time() < until:
                pass
            yield
        if error is not None:
            raise error

    async def large_after_small() -> list[float]:
        throttle = CpuThrottle(None)
        small = asyncio.create_task(throttle.drive(steps(3, ValueError if how == "raised" else None)))
        if how == "cancelled":
            await sleep(0)
            small.cancel()
        await asyncio.gather(small, return_exceptions=True)
        slept.clear()
        await throttle.drive(steps(60))
        return slept

    monkeypatch.setattr("steelyard._internal.loops.asyncio.sleep", noted)
    found = asyncio.run(large_after_small())
    assert len(found) > 20 and sum(found) == 0
