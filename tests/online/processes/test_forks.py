"""Every usual way to fork, and every usual end: each turn that a process took is in the file.

Where a program forks, one of its threads is writing results: SQLite's locks of a process are inherited.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import programs
from servers import free_port
from waiting import reply_of, until

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]
_HERE = Path(__file__).parent
_FORKING = (
    "os.fork",
    "os.fork from a thread",
    "multiprocessing fork",
    "multiprocessing spawn",
    "multiprocessing forkserver",
    "executor fork",
    "executor spawn",
    "pool",
)
_BILLIARD = "pool of billiard"
_SERVERS = {
    "gunicorn": ["gunicorn", "-w", "2", "online.processes.forking_hosts:wsgi", "-b"],
    "gunicorn with preload": [
        "gunicorn",
        "--preload",
        "-w",
        "2",
        "online.processes.forking_hosts:wsgi",
        "-b",
    ],
    "uvicorn": ["uvicorn", "online.processes.forking_hosts:asgi", "--port"],
    "uvicorn with workers": ["uvicorn", "--workers", "2", "online.processes.forking_hosts:asgi", "--port"],
}
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_FAST = {
    *("os.fork", "os.fork from a thread", "multiprocessing fork"),
    *(_BILLIARD, "gunicorn with preload", "uvicorn with workers"),
}


def _cases(names: tuple[str, ...]) -> list[object]:
    # Importing the package again in each child takes seconds.
    return [pytest.param(name, marks=() if name in _FAST else pytest.mark.slow) for name in names]


@contextmanager
def running(folder: Path, *command: str, spool: bool = False) -> Iterator[programs.Program]:
    """A program in a group of processes of its own, which is ended with the block."""
    environment = os.environ | {"PYTHONPATH": str(_HERE.parents[1]), "PYTHONWARNINGS": "ignore"}
    if spool:
        environment["SPOOL"] = "spool.db"
    process = programs.start(command, ours=True, session=True, cwd=folder, env=environment)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def gone(group: int) -> bool:
    """Whether no process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def check_all_are_there(folder: Path, output: object) -> None:
    accepted = (folder / "accepted").read_text().split()
    with closing(sqlite3.connect(folder / "results.db")) as connection:
        written = {name for (name,) in connection.execute("SELECT record_id FROM evaluations")}
    if (spool := folder / "spool.db").exists():
        with closing(sqlite3.connect(spool)) as connection:
            waiting = connection.execute("SELECT record_id FROM turns WHERE body IS NOT NULL")
            written |= {name for (name,) in waiting}
    missing = [name for name in accepted if name not in written]
    assert accepted and not missing, (len(missing), len(accepted), output)


@pytest.mark.parametrize("spool", [False, True], ids=["memory", "spool"])
@pytest.mark.parametrize("host", _cases((*_FORKING, _BILLIARD)))
def test_what_parents_and_children_take_is_written(host: str, spool: bool, tmp_path: Path) -> None:
    with running(tmp_path, str(_HERE / "forking_hosts.py"), host, "leave", spool=spool) as process:
        output = process.communicate(timeout=250)
        until(lambda: gone(process.pid))
    assert process.returncode == 0, output
    check_all_are_there(tmp_path, output)


# A pool of billiard's may hang by itself then: a killed worker can hold the lock of the results' queue.
@pytest.mark.parametrize("number", _SIGNALS)
@pytest.mark.parametrize("host", _cases(_FORKING))
def test_a_signal_loses_no_turn(host: str, number: signal.Signals, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    # All: Python drops signals that come to a child before its functions at a fork have ended.
    processes = 2 if host.startswith(("executor", "pool")) else 3
    with running(tmp_path, str(_HERE / "forking_hosts.py"), host, "stay") as process:
        until(lambda: ready.exists() and len(ready.read_text().split()) >= processes)
        os.killpg(process.pid, number)
        output = process.communicate(timeout=250)
        until(lambda: gone(process.pid))
    check_all_are_there(tmp_path, "")
    assert number == signal.SIGINT or process.returncode in (-number, 0), output


@pytest.mark.parametrize("number", _SIGNALS)
@pytest.mark.parametrize("server", _cases(tuple(_SERVERS)))
def test_a_server_that_is_ended_loses_no_turn(server: str, number: signal.Signals, tmp_path: Path) -> None:
    *command, option = _SERVERS[server]
    port = free_port()
    where = ["-b", f"127.0.0.1:{port}"] if option == "-b" else ["--port", str(port)]
    with running(tmp_path, "-m", *command, *where) as process:
        for _ in range(60):
            assert reply_of(f"http://127.0.0.1:{port}/") == "taken"
        os.kill(process.pid, number)
        output = process.communicate(timeout=250)
        until(lambda: gone(process.pid))
    check_all_are_there(tmp_path, output)


@pytest.mark.slow
@pytest.mark.parametrize("number", _SIGNALS)
def test_celery_loses_no_turn(number: signal.Signals, tmp_path: Path) -> None:
    for name in ("broker", "control", "processed"):
        (tmp_path / name).mkdir()
    accepted = tmp_path / "accepted"
    command = [
        "celery",
        "-A",
        "online.processes.celery_tasks",
        "worker",
        "--pool",
        "prefork",
        "-c",
        "2",
        "-l",
        "warning",
    ]
    with running(tmp_path, "-m", *command, "--without-mingle", "--without-gossip") as process:
        sending = "from online.processes.celery_tasks import take; [take.delay(n) for n in range(40)]"
        with running(tmp_path, "-c", sending) as sender:
            assert sender.wait(timeout=250) == 0
        until(lambda: accepted.exists() and len(accepted.read_text().split()) >= 40)
        os.kill(process.pid, number)
        output = process.communicate(timeout=250)
        until(lambda: gone(process.pid))
    check_all_are_there(tmp_path, output)


_GREEN = """
import _queue, _thread, asyncio, concurrent.futures.thread, logging, selectors, sys, threading, types
kept = {(of.__name__, name): getattr(of, name) for of, name in (
    (_thread, "start_new_thread"), (_thread, "allocate_lock"), (_thread, "RLock"), (_thread, "get_ident"),
    (selectors, "DefaultSelector"), (_queue, "SimpleQueue"))}
class Green:
    def __init__(self, *_): self.thread = kept["_thread", "get_ident"]()
    def acquire(self, *_, **__):
        assert self.thread == kept["_thread", "get_ident"](), "a lock between greenlets wakes no other thread"
        return True
    def release(self): pass
    __enter__, __exit__ = acquire, lambda *_: None
    locked, _is_owned = lambda self: False, lambda self: True
threading._start_new_thread = _thread.start_new_thread = lambda *_: 1  # a greenlet: it never gets its turn
threading._allocate_lock = threading.Lock = _thread.allocate_lock = Green
threading.RLock = _thread.RLock = selectors.DefaultSelector = Green
sys.modules["gevent.monkey"] = types.SimpleNamespace(get_original=lambda of, name: kept[of, name])

from steelyard import Monitor, Record
from steelyard.sinks import JSONLSink, SQLiteSink
monitor = Monitor(metrics=[], sinks=[SQLiteSink("out.db"), JSONLSink("out.jsonl")], spool="spool.db")
heard = []
monitor.on_evaluation(heard.append)
for number in range(20):
    monitor.submit(Record(question=f"{number}?", answer="a"))
left = monitor.flush(40)
print(left, len(heard), [counts.written for counts in monitor.stats().sinks.values()], monitor.close())
"""


def test_where_threads_are_greenlets_turns_are_judged_in_threads_all_the_same(tmp_path: Path) -> None:
    done = programs.run(["-c", _GREEN], cwd=tmp_path, timeout=100)
    assert (done.stdout, done.stderr) == ("0 20 [20, 20] 0\n", "")


_CALLBACKS = """
import os, threading, warnings
from steelyard import Monitor, Record
warnings.simplefilter("ignore")
parent, begun, released = os.getpid(), threading.Event(), threading.Event()

def listen(evaluation):
    if os.getpid() == parent:
        begun.set()
        released.wait(60)
    else:
        print("told", evaluation.record_id, flush=True)

monitor = Monitor(metrics=[], sinks=[])
monitor.on_evaluation(listen)
monitor.submit(Record(id="parent's", question="Why?", answer="Because."))
begun.wait(60)
child = os.fork()
if child == 0:
    monitor.submit(Record(id="child's", question="Why?", answer="Because."))
    print("left", monitor.flush(60), monitor.stats().callbacks_missed, monitor.close(60), flush=True)
    os._exit(0)
began = __import__("time").monotonic()
os.waitpid(child, 0)
print("soon" if __import__("time").monotonic() - began < 50 else "late", flush=True)
released.set()
monitor.close()
"""


def test_a_child_waits_for_no_callback_that_its_parent_was_in() -> None:
    done = programs.run(["-c", _CALLBACKS], ours=True, timeout=250)
    assert (done.stdout.split("\n"), done.stderr) == (["told child's", "left 0 0 0", "soon", ""], "")
