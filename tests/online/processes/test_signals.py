"""Signals, finalizers, forks and the end of the program leave no lock behind and keep their time."""

from __future__ import annotations

import gc
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import FrameType

import pytest

import programs
from online.helpers import check_law, turn
from steelyard.online import Monitor
from steelyard.testing import MemorySink

pytestmark = [pytest.mark.faults, pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")]

_HEAD = """
import asyncio, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
from steelyard.online import Monitor
from steelyard.record import Record
"""


def run(script: str, *, seconds: float = 100) -> tuple[int, str, float]:
    """Run a script in a new interpreter: its exit code, its output, how long it took."""
    started = time.monotonic()
    done = programs.run(["-c", _HEAD + textwrap.dedent(script)], ours=True, timeout=seconds)
    return done.returncode, done.stdout + done.stderr, time.monotonic() - started


class Struck(BaseException):
    """Raised out of a signal handler, as SystemExit would be."""


def submit_for_a_while(monitor: Monitor, *, signal_after: float) -> None:
    """Ends by a signal, as a rule: the interpreter ignores what is raised inside a finalizer.

    A function of its own, since the jumps of a loop around a `try` are not within it.
    """
    signal.setitimer(signal.ITIMER_REAL, signal_after)
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        monitor.submit(turn("x"))
        monitor.stats()
    # A signal that comes now is raised here.
    signal.setitimer(signal.ITIMER_REAL, 0)


def strike(monitor: Monitor, *, times: int) -> int:
    """Submit and count in a loop while signals raise out of it; returns how many came."""
    struck = 0

    def handler(number: int, frame: FrameType | None) -> None:
        raise Struck

    before = signal.signal(signal.SIGALRM, handler)
    try:
        while struck < times:
            try:
                submit_for_a_while(monitor, signal_after=0.0003 + struck % 7 * 0.0001)
            except Struck:
                struck += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return struck


def struck(times: int) -> None:
    waiting = signal.setitimer(signal.ITIMER_REAL, 0)
    monitor = Monitor(metrics=[], sinks=[], max_queue=50)
    monitor.submit(turn())
    assert strike(monitor, times=times) == times
    answered: list[int] = []
    asking = threading.Thread(target=lambda: answered.append(monitor.stats().queued), daemon=True)
    asking.start()
    asking.join(60)
    assert answered and answered[0] <= 50
    assert monitor.flush(60) == 0
    check_law(monitor.stats())
    monitor.close()
    signal.setitimer(signal.ITIMER_REAL, *waiting)


# One may strike in a callback of the garbage collector, as hypothesis has one; Python only reports it then.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
def test_exceptions_out_of_signals_leave_no_lock_behind() -> None:
    struck(300)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
def test_many_exceptions_out_of_signals_leave_no_lock_behind() -> None:
    struck(20_000)


_LOOP = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
children = []
for number in range({programs}):
    child = os.fork()
    if child == 0:
        monitor = Monitor(metrics=[], sinks=[], exit_timeout=2)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(0))
        signal.setitimer(signal.ITIMER_REAL, 0.02 + number % 13 * 0.0007)
        while True:
            monitor.submit(Record(id="x", question="q"))
    children.append(child)
    if len(children) == 4:
        deadline = time.monotonic() + 60  # what hangs, hangs for good
        for child in children:
            while os.waitpid(child, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    print("hangs"); os.kill(child, signal.SIGKILL); break
                time.sleep(0.005)
        children = []
os._exit(0)
"""


@pytest.mark.timeout(300)  # 48 programs may take their two seconds each to end, and longer on a busy machine
def test_the_documented_hook_ends_programs_that_submit_in_a_loop() -> None:
    code, output, _ = run(_LOOP.format(programs=48), seconds=280)
    assert code == 0 and "hangs" not in output


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_documented_hook_ends_a_thousand_programs() -> None:
    code, output, _ = run(_LOOP.format(programs=1000), seconds=1100)
    assert code == 0 and "hangs" not in output


def test_stats_flush_and_close_return_inside_a_handler() -> None:
    code, output, seconds = run("""
    monitor = Monitor(metrics=[], sinks=[])
    calls = []
    def handler(*_):
        calls.append(monitor.stats().seen)
        monitor.flush(0.01)
        signal.setitimer(signal.ITIMER_REAL, 0.003)
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    ends = time.monotonic() + 1.5
    while time.monotonic() < ends:
        monitor.submit(Record(id="x", question="q"))
        monitor.stats()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, lambda *_: (monitor.close(60), sys.exit(0)))
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    while True:
        monitor.submit(Record(id="x", question="q"))
    """)
    assert (code, output) == (0, "")
    assert seconds < 80


def test_a_finalizer_may_submit_while_counts_are_read() -> None:
    sink = MemorySink()
    monitor = Monitor(metrics=[], sinks=[sink])

    class Submits:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            monitor.submit(turn())

    before = gc.get_threshold()
    gc.set_threshold(5)
    try:
        for _ in range(300):
            Submits()
            check_law(monitor.stats())
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert monitor.flush(60) == 0
    # The collector may run in a thread of ours, whose turns are not taken.
    assert monitor.stats().seen == len(sink.evaluations) > 0


def test_without_file_descriptors_a_turn_counts_once_and_waits() -> None:
    code, output, _ = run("""
    import resource
    monitor = Monitor(metrics=[], sinks=[])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard[1]))
    monitor.submit(Record(question="q"))
    for most in (3, 4, 5):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard[1]))
        monitor.start()
    stats = monitor.stats()
    assert (stats.seen, stats.pending, dict(stats.skipped)) == (1, 1, {}), stats
    resource.setrlimit(resource.RLIMIT_NOFILE, hard)
    monitor.submit(Record(question="q"))
    assert monitor.flush(60) == 0
    assert monitor.stats().evaluated == 2
    """)
    assert code == 0 and "Exception ignored" not in output, output


def test_where_no_thread_could_be_started_a_later_turn_tries_again() -> None:
    code, output, _ = run("""
    name = "_start_joinable_thread" if hasattr(threading, "_start_joinable_thread") else "_start_new_thread"
    real, tried = getattr(threading, name), []
    def refuse(*given, **named):
        tried.append(1)
        raise RuntimeError("can't start new thread")
    setattr(threading, name, refuse)
    monitor = Monitor(metrics=[], sinks=[])
    done = threading.Event()
    monitor.on_evaluation(lambda evaluation: evaluation.record.question == "last" and done.set())
    for _ in range(200): monitor.submit(Record(question="q"))
    assert 1 <= len(tried) < 50, tried
    setattr(threading, name, real)
    for _ in range(200):
        monitor.submit(Record(question="last"))
        if done.wait(0.1): break
    assert done.is_set()
    assert monitor.flush(60) == 0
    assert monitor.stats().evaluated == monitor.stats().seen
    """)
    assert code == 0, output


def test_ctrl_c_right_after_the_first_turn_ends_by_sigint(tmp_path: Path) -> None:
    written = tmp_path / "scores.jsonl"
    status, output, _ = run(f"""
        monitor = Monitor(metrics=[], sinks=["jsonl:{written}"])
        monitor.submit(Record(question="Why?", answer="Because."))
        signal.raise_signal(signal.SIGINT)
    """)
    assert status == -signal.SIGINT, output
    assert len(written.read_text().splitlines()) == 1


def test_the_first_process_of_a_container_ends_by_sigterm_too(tmp_path: Path) -> None:
    apart = ["unshare", "--pid", "--fork"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("needs unshare, and the right to use it")
    written = tmp_path / "scores.jsonl"
    script = f"""{_HEAD}
monitor = Monitor(metrics=[], sinks=["jsonl:{written}"])
monitor.submit(Record(question="Why?", answer="Because."))
os.kill(1, signal.SIGTERM)
time.sleep(100)
"""
    done = subprocess.run([*apart, sys.executable, "-c", script], timeout=90, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert len(written.read_text().splitlines()) == 1


@pytest.mark.parametrize("handler", ["signal.SIG_DFL", "lambda *_: (monitor.close(60), sys.exit(0))"])
def test_a_signal_within_a_call_of_ours_holds_up_nobody_and_loses_no_turn(
    handler: str, tmp_path: Path
) -> None:
    written = tmp_path / "scores.jsonl"
    status, output, seconds = run(f"""
    from steelyard.sinks import JSONLSink
    class Slow(JSONLSink):
        async def write(self, evaluations):
            await asyncio.sleep(0.5)
            await super().write(evaluations)
    class Strikes:
        id, trace, build = "x", None, lambda self: None
        @property
        def size(self):
            # Turns are weighed by whoever holds the lock of the queue.
            if threading.current_thread() is threading.main_thread():
                os.kill(os.getpid(), signal.SIGTERM)
            return 1
    signal.signal(signal.SIGTERM, {handler})
    monitor = Monitor(metrics=[], sinks=[Slow("{written}")], exit_timeout=60)
    for _ in range(20): monitor.submit(Record(question="Why?", answer="Because."))
    while True:
        monitor.submit(Strikes())
        monitor.stats()
    """)
    assert status in (-signal.SIGTERM, 0) and seconds < 60, output
    assert len(written.read_text().splitlines()) == 20


def test_five_monitors_that_hang_leave_together() -> None:
    code, output, seconds = run("""
    from steelyard.testing import ScriptedJudge
    class Hangs(ScriptedJudge):
        name = "hangs"
        async def answer(self, request): await asyncio.Event().wait()
        async def write(self, evaluations): time.sleep(1000)
    hangs = Hangs(lambda question, request: None)
    judged = dict(metrics=["faithfulness"], sinks=[], judge=hangs)
    monitors = [Monitor(**each, exit_timeout=4) for each in (dict(metrics=[], sinks=[hangs]), *[judged] * 4)]
    for monitor in monitors: monitor.submit(Record(question="q", answer="It is so.", contexts=("It is.",)))
    time.sleep(0.3)
    began = time.monotonic()
    import atexit
    from steelyard._internal import lifecycle
    atexit.unregister(lifecycle._close_all)
    def timed():
        lifecycle._close_all()
        print(f"took {time.monotonic() - began:.2f}")
    atexit.register(timed)
    """)
    assert code == 0, output
    # What could not be written is told in the log beside it.
    [took] = [line for line in output.splitlines() if line.startswith("took ")]
    assert float(took.split()[1]) < 3 * 4


def test_a_fork_while_the_shared_monitor_is_made() -> None:
    code, output, _ = run("""
    from steelyard.online import default_monitor, monitor
    made = threading.Event()
    class Slow:
        def __init__(self): made.set(); time.sleep(1)
    real, monitor.Monitor = monitor.Monitor, Slow
    threading.Thread(target=default_monitor).start()
    made.wait()
    child = os.fork()
    if child == 0:
        monitor.Monitor = lambda: "made"
        signal.alarm(10)
        os._exit(0 if default_monitor() == "made" else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """)
    assert code == 0, output


def test_a_fork_while_a_prompt_is_compared_with_earlier_ones() -> None:
    code, output, _ = run("""
    from steelyard.recording.building._templates import PromptTemplates
    within = threading.Event()
    class Slow(PromptTemplates):
        def _learn(self, *given):
            within.set()
            time.sleep(0.5)
            return super()._learn(*given)
    templates = Slow()
    ask = lambda: templates.filled_in("Be brief.\\n\\nWhy?\\n\\nAnswer:", question="Why?")
    thread = threading.Thread(target=ask)
    thread.start()
    within.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        ask()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    """)
    assert code == 0, output


def test_a_fork_waits_for_no_thread_that_waits_for_the_fork() -> None:
    code, output, _ = run("""
    from steelyard._internal.forks import ForkLock
    class Told(ForkLock):
        def __init__(self):
            super().__init__()
            self.acquire, self.taken = self.take, threading.Event()
        def take(self, *args, **options):
            if self._lock.acquire(*args, **options):
                self.taken.set()
                return True
            return False
        def in_child(self, *, whole):
            self.whole = whole
            super().in_child(whole=whole)
    inner, outer, held = Told(), Told(), threading.Event()
    def nested():
        with outer:
            held.set()
            # The fork takes locks in the order in which they were made: this one, then it waits for ours.
            inner.taken.wait()
            with inner: pass
    thread = threading.Thread(target=nested)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        with inner, outer: os._exit(0 if inner.whole and outer.whole else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    """)
    assert code == 0, output
