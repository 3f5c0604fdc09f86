"""Exit, fork, threads and loops: each in a process of its own where it has to be."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import programs
from online.helpers import check_law, finish, turn
from steelyard.online import Monitor, Selection, Suspicion
from steelyard.testing import MemorySink
from waiting import until

_HEAD = """
import asyncio, os, signal, sys, threading, time
from steelyard.online import Monitor, Selection, Suspicion
from steelyard.record import Record

class Slow:
    name = "slow"
    async def write(self, evaluations):
        await asyncio.sleep(0.3)
        with open(sys.argv[1], "a") as file:
            for evaluation in evaluations:
                file.write(evaluation.record_id + "\\n")
    async def aclose(self):
        await asyncio.sleep(0.2)
        with open(sys.argv[1], "a") as file:
            file.write("closed\\n")

monitor = Monitor(metrics=[], sinks=[Slow()], exit_timeout=9)
def submit(name):
    monitor.submit(Record(id=name, question="q", answer="a"))
"""

_CLOSED_ELSEWHERE = "threading.Thread(target=monitor.close, daemon=True).start(); time.sleep(0.1)"


def run(script: str, out: Path, *, code: int = 0) -> tuple[list[str], str, float]:
    """Run a script in a new interpreter: the ids it wrote, its stderr, and how long it took."""
    started = time.monotonic()
    command, env = (
        ["-c", _HEAD + textwrap.dedent(script), str(out)],
        {**os.environ, "PYTHONWARNINGS": "error"},
    )
    done = programs.run(command, ours=True, env=env, timeout=50)
    assert done.returncode == code, done.stderr
    lines = out.read_text().splitlines() if out.exists() else []
    return lines, done.stderr, time.monotonic() - started


@pytest.mark.faults
@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise SystemExit", 0),
        ("1 / 0", 1),
        (_CLOSED_ELSEWHERE, 0),
        (f"{_CLOSED_ELSEWHERE}; os.kill(os.getpid(), signal.SIGTERM); time.sleep(90)", -signal.SIGTERM),
    ],
)
def test_what_is_pending_is_written_at_exit(tmp_path: Path, ending: str, code: int) -> None:
    lines, errors, _ = run(f"submit('a'); submit('b')\n{ending}", tmp_path / "out", code=code)
    assert lines == ["a", "b", "closed"]
    assert errors == "" or "ZeroDivisionError" in errors
    assert "Exception ignored" not in errors and "steelyard" not in errors


@pytest.mark.faults
@pytest.mark.parametrize("again", ["pass", "again.start()"])
def test_sigterm_with_the_documented_hook_flushes(tmp_path: Path, again: str) -> None:
    script = f"""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    submit('a')
    again = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
    again.daemon = True
    {again}
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(1000)
    """
    lines, errors, _ = run(script, tmp_path / "out")
    assert (lines, errors) == (["a", "closed"], "")


@pytest.mark.faults
def test_exit_does_not_wait_longer_than_it_may(tmp_path: Path) -> None:
    script = """
    class Hangs:
        name = "hangs"
        async def write(self, evaluations): await asyncio.sleep(1000)
        async def aclose(self): pass
    monitor = Monitor(metrics=[], sinks=[Hangs()], exit_timeout=0.5)
    submit('a')
    with open(sys.argv[1], "w") as file:
        file.write(str(time.monotonic()))
    """
    (began,), errors, _ = run(script, tmp_path / "out")
    assert "Traceback" not in errors
    assert time.monotonic() - float(began) < 80  # that clock is one for all processes


@pytest.mark.faults
def test_a_host_name_is_resolved_after_the_main_thread_has_ended(tmp_path: Path) -> None:
    script = """
    class Web:
        name = "web"
        async def write(self, evaluations):
            await asyncio.sleep(0.5)
            reader, writer = await asyncio.open_connection("localhost", int(os.environ["PORT"]))
            writer.write(b"hello")
            writer.close()
            with open(sys.argv[1], "a") as file:
                file.write("sent")
        async def aclose(self): pass
    monitor = Monitor(metrics=[], sinks=[Web()], exit_timeout=5)
    submit("a")
    """
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        os.environ["PORT"] = str(server.getsockname()[1])
        try:
            lines, errors, _ = run(script, tmp_path / "out")
        finally:
            del os.environ["PORT"]
    assert lines == ["sent"]
    assert errors == ""


@pytest.mark.faults
def test_a_forked_child_has_a_monitor_of_its_own(tmp_path: Path) -> None:
    script = """
    import warnings
    warnings.simplefilter("ignore")
    submit('parent')
    time.sleep(0.1)
    child = os.fork()
    submit('child' if child == 0 else 'parent too')
    left = monitor.flush(60)
    counts = monitor.stats()
    with open(sys.argv[1], "a") as file:
        file.write(f"{'child' if child == 0 else 'parent'}:{left}:{counts.seen}:{counts.evaluated}\\n")
    if child:
        os.waitpid(child, 0)
    """
    lines, errors, _ = run(script, tmp_path / "out")
    assert sorted(lines) == [
        *("child", "child:0:1:1", "closed", "closed"),
        *("parent", "parent too", "parent:0:2:2"),
    ]
    assert errors == ""


@pytest.mark.faults
def test_fork_while_another_thread_submits(tmp_path: Path) -> None:
    script = """
    import warnings
    warnings.simplefilter("ignore")
    monitor = Monitor(metrics=[], sinks=[])
    stop = threading.Event()
    def spin():
        while not stop.is_set():
            submit('x')
    threads = [threading.Thread(target=spin) for _ in range(3)]
    for thread in threads: thread.start()
    time.sleep(0.05)
    for _ in range(10):
        child = os.fork()
        if child == 0:
            submit('child')
            left, seen = monitor.flush(60), monitor.stats().seen
            os._exit(0 if (left, seen) == (0, 1) else 7)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status
    stop.set()
    for thread in threads: thread.join()
    monitor.flush(60)
    """
    _, errors, _ = run(script, tmp_path / "out")
    assert errors == ""


@pytest.mark.faults
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(tmp_path: Path, method: str) -> None:
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import multiprocessing, warnings
            warnings.simplefilter("ignore")
            from steelyard.online import Monitor
            from steelyard.record import Record
            monitor = Monitor(metrics=[], sinks=[])
            def work(number):
                monitor.submit(Record(question=str(number)))
                return monitor.flush(60), monitor.stats().pending
            if __name__ == "__main__":
                monitor.submit(Record(question="q"))
                with multiprocessing.get_context("{method}").Pool(2) as pool:
                    assert pool.map(work, range(4)) == [(0, 0)] * 4
                    pool.close()
                    pool.join()
                assert monitor.flush(60) == 0
            """
        )
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=150, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_many_threads() -> None:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink])

    def work(name: str) -> None:
        for number in range(200):
            monitor.submit(turn(f"{name}{number}"))
            check_law(monitor.stats())

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert monitor.flush(60) == 0
    assert len(sink.evaluations) == monitor.stats().evaluated == 800


@pytest.mark.faults
def test_the_hosts_loop_is_not_needed() -> None:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink])

    async def host(name: str) -> None:
        monitor.submit(turn(name))

    asyncio.run(host("one"))
    asyncio.run(host("two"))
    assert monitor.flush(60) == 0
    assert len(sink.evaluations) == 2


@pytest.mark.faults
def test_it_works_inside_a_running_loop_as_in_a_notebook() -> None:
    monitor = Monitor(metrics=[], sinks=[])

    async def cell() -> int:
        monitor.submit(turn())
        return monitor.flush(60)

    assert asyncio.run(cell()) == 0


def test_it_wakes_up_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.online._intake._LINGER", 0.05)
    monitor = Monitor(metrics=[], sinks=[])
    for _ in range(3):
        finish(monitor, [turn()])
        time.sleep(0.2)
    assert monitor.stats().evaluated == 3


def test_no_thread_before_the_first_turn() -> None:
    def own() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "steelyard"} - before

    before = set(threading.enumerate())
    monitor = Monitor(metrics=[], sinks=[])
    assert set(threading.enumerate()) <= before
    monitor.submit(turn())
    assert [thread.daemon for thread in own()] == [True]
    monitor.close()
    assert not own()


_LOADED = """
from steelyard.judge import _static
from steelyard.online import Monitor, SpoolSettings
def made(**options):
    Monitor(sinks=[], **options).close()
    return _static._vectors is not None
assert not made(metrics=[])
assert not made(spool=SpoolSettings(path="turns.db", evaluate=False))
assert made()
"""


def test_what_the_local_judge_needs_is_loaded_when_a_monitor_that_judges_is_made(tmp_path: Path) -> None:
    done = programs.run(["-c", _LOADED], ours=True, cwd=tmp_path, timeout=150)
    assert done.returncode == 0, done.stderr


def test_closing_at_once_ends_the_thread() -> None:
    for _ in range(20):
        before = set(threading.enumerate())
        monitor = Monitor(metrics=[], sinks=[])
        monitor.submit(turn())
        monitor.close(0)
        check_law(monitor.stats())
        assert not any(t.name == "steelyard" and t.is_alive() for t in set(threading.enumerate()) - before)


@pytest.mark.faults
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGQUIT"])
@pytest.mark.parametrize("handling", ["SIG_IGN", "SIG_DFL"])
def test_what_a_program_says_of_sigterm_holds(tmp_path: Path, handling: str, name: str) -> None:
    script = f"""
    signal.signal(signal.{name}, signal.{handling})
    monitor = Monitor(metrics=[], sinks=[Slow()], exit_timeout=9)
    submit('a')
    os.kill(os.getpid(), signal.{name})
    """
    ignored = handling == "SIG_IGN"
    lines, errors, _ = run(script, tmp_path / "out", code=0 if ignored else -signal.Signals[name])
    # A program that dies of the signal closes its sinks as well.
    assert (lines, errors) == (["a", "closed"], "")


@pytest.mark.faults
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_signal_that_a_handler_set_later_takes_for_no_end_ends_nothing(tmp_path: Path) -> None:
    script = """
    monitor = Monitor(metrics=[], sinks=[Slow()], exit_timeout=9)
    earlier = signal.getsignal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, lambda *told: callable(earlier) and earlier(*told))
    os.kill(os.getpid(), signal.SIGHUP)
    submit('a')
    """
    lines, errors, _ = run(script, tmp_path / "out")
    assert (lines, errors) == (["a", "closed"], "")


def test_nothing_happens_after_close() -> None:
    monitor = Monitor(metrics=[], sinks=[], selection=Selection(rate=0.0, suspicion=Suspicion()))
    finish(monitor, [turn("passed over")])
    monitor.close()
    before = set(threading.enumerate())
    monitor.feedback("passed over", False)
    monitor.start()
    monitor.submit(turn("late"))
    assert monitor.flush(60) == monitor.close() == 0
    stats = monitor.stats()
    assert (stats.pending, stats.skipped) == (0, {"sampled_out": 1, "closed": 1})
    assert set(threading.enumerate()) <= before


@pytest.mark.faults
def test_a_turn_taken_just_before_the_end_needs_no_thread_that_starts_later(tmp_path: Path) -> None:
    """Python 3.12 refuses new threads as soon as the main thread has ended."""
    script = """
    late = []
    real = threading.Thread.start
    def start(thread):
        if threading.current_thread() is not threading.main_thread():
            late.append(thread.name)
        real(thread)
    threading.Thread.start = start
    monitor = Monitor(metrics=[], sinks=[Slow()], mask=lambda r: r, spool=sys.argv[1] + ".db", exit_timeout=9)
    submit("a")
    import atexit
    atexit._run_exitfuncs()
    assert late == [], late
    """
    lines, errors, _ = run(script, tmp_path / "out")
    assert (lines, errors) == (["a", "closed"], "")


def test_a_dropped_monitor_finishes_its_turns_and_lets_its_threads_go(
    the_equations_hold: list[Monitor],
) -> None:
    before = set(threading.enumerate())
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink])
    monitor.submit(turn())
    assert set(threading.enumerate()) > before
    the_equations_hold.clear()
    del monitor
    gc.collect()
    until(lambda: not set(threading.enumerate()) - before)
    assert len(sink.evaluations) == 1
