"""What happens to running Monitors when their process ends, and in a forked child."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Protocol
from weakref import WeakSet

from steelyard._internal.forks import in_children, is_ours
from steelyard._internal.native import RLock, thread


class _Closes(Protocol):
    @property
    def exit_timeout(self) -> float: ...
    def flush(self, timeout: float) -> int: ...
    def stop(self) -> None: ...
    def close(self, timeout: float, *, grace: float | None = None) -> int: ...


class _Forks(Protocol):
    def after_fork(self) -> None: ...


@dataclass(frozen=True)
class _Closing:
    """The end by a signal, under way: the thread that closes all, and how long it may take."""

    thread: threading.Thread
    ends: float

    @property
    def rest(self) -> float:
        return max(0.0, self.ends - time.monotonic())


# Re-entrant: a finalizer that closes a Monitor may run while this very thread holds it.
_lock = RLock()
# Of the one second that `_close_all` allows; the rest is for threads that end a little late.
_GRACE = 0.8
_running: set[_Closes] = set()
_registered = False
# Weak, since a Monitor that nobody uses any more must be able to go.
_forking: WeakSet[_Forks] = WeakSet()
_handled_before: Any = None
"""What was done about SIGTERM before `_on_sigterm`."""
_HAS_MASK = hasattr(signal, "pthread_sigmask")
_closing: _Closing | None = None
_HINDERED = 0.1
"""Seconds that a handler waits for the end at a time, in a thread that may hinder it."""
_MOMENT = 0.001
"""Seconds for which such a thread goes on."""
_ALSO_END = [signal.Signals[name] for name in ("SIGHUP", "SIGQUIT") if hasattr(signal, name)]
"""End a program as SIGTERM does, where nobody handles them: a terminal that is closed, Ctrl-\\."""


def at_exit(monitor: _Closes) -> None:
    """Close a Monitor's run when the process ends.

    Called when it starts rather than when it is made: exit functions run last in, first out, so the exporters
    that it writes to, which were set up before the first turn, are still open then.
    """
    global _registered
    with _lock:
        _running.add(monitor)
        if not _registered:
            _registered = True
            atexit.register(_close_all)
            _end_with_a_child()
            _end_with_a_forking_thread()


def forget(monitor: _Closes) -> None:
    """A Monitor's run has been closed."""
    with _lock:
        _running.discard(monitor)


def _close_all() -> None:
    """Close all side by side: however many hang, the program ends one second after the longest time given."""
    # A copy: closing takes Monitors out of the set.
    monitors, started = list(_running), time.monotonic()
    for monitor in monitors:
        _insist(monitor.flush, started + monitor.exit_timeout)
    # All are asked to stop before the first is waited for.
    for monitor in monitors:
        monitor.stop()
    now = time.monotonic()
    for monitor in monitors:
        # What is left of its time is for the counts: files that others write make them wait.
        ended = max(now, started + monitor.exit_timeout) + _GRACE
        _insist(partial(_close, monitor), ended)
    # Python ends by SIGINT after Ctrl-C. It forgets that when it executes a text, as modules
    # with dataclasses do that the last turn imports; an interrupt out of a text reminds it.
    if getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1"):
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


def _close(monitor: _Closes, grace: float) -> None:
    monitor.close(0, grace=grace)


def _insist(end: Callable[[float], object], ends: float) -> None:
    """Call with the seconds that are left, and again if a signal that comes once more asks for the end."""
    while True:
        with contextlib.suppress(SystemExit):
            end(max(0.0, ends - time.monotonic()))
            return


def _end_with_a_child() -> None:
    """Children of multiprocessing and of Celery's billiard end without exit functions, and have their own."""
    for package in ("multiprocessing", "billiard"):
        process, util = sys.modules.get(f"{package}.process"), sys.modules.get(f"{package}.util")
        if process is None or util is None or (child := process.current_process()).name == "MainProcess":
            continue
        util.Finalize(None, _close_all, exitpriority=0)
        # A worker of billiard's pools leaves these out, too.
        worker: Any = getattr(child, "_target", None)
        if hasattr(worker, "on_exit"):
            worker.on_exit = partial(_close_after, worker.on_exit)


def _close_after(ends: Callable[..., object] | None, *args: object) -> None:
    try:
        if ends is not None:
            ends(*args)
    finally:
        _close_all()


def _end_with_a_forking_thread() -> None:
    """A child that a thread has forked ends with its last thread, without exit functions.

    Ours would keep it for ever, and whoever waits for it.
    """
    # What C code has started says nothing of its end.
    if type(threading.main_thread()).__name__ not in ("_MainThread", "_DummyThread"):
        thread(_close_after_the_last, name="steelyard-end").start()


def _close_after_the_last() -> None:
    main = threading.main_thread()
    while left := [thread for thread in threading.enumerate() if thread is main or not thread.daemon]:
        left[0].join()
    _close_all()


def attend(monitor: _Forks) -> None:
    """Let a Monitor know when it finds itself in a forked child, and see to it that no signal loses a turn.

    SIGTERM and some others end a Python program at once, without exit functions, if nobody handles them.
    """
    global _handled_before
    _forking.add(monitor)
    if threading.current_thread() is not threading.main_thread():
        return
    found = signal.getsignal(signal.SIGTERM)
    # Ignored, or handled by something that is not Python's: left alone.
    if found is not _on_sigterm and (found is signal.SIG_DFL or callable(found)):
        _handled_before = found
        signal.signal(signal.SIGTERM, _on_sigterm)
    for number in _ALSO_END:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _on_another)


def _on_another(number: int, frame: FrameType | None) -> None:
    # A handler that was set since may call the one before it, and need not mean the end.
    if signal.getsignal(number) is _on_another:
        _end_by(number, frame)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    if callable(_handled_before):
        _handled_before(number, frame)
        # A server that shuts down in order, and then raises the signal again to die of it: uvicorn does, with
        # its handler gone. Blocked in this thread, it waits for the exit functions.
        if _HAS_MASK:
            atexit.register(signal.pthread_sigmask, signal.SIG_UNBLOCK, {number})
            # Exit functions run last in, first out: this one has to come before.
            atexit.unregister(_close_all)
            atexit.register(_close_all)
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        return
    _end_by(number, frame)


def _end_by(number: int, frame: FrameType | None) -> None:
    goes_on = False
    try:
        goes_on = _closes_later(number, frame)
    except RuntimeError:  # no thread can be started
        _close_all()
    finally:
        if not goes_on:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
            # The first process of a container does not die of a signal.
            os._exit(128 + number)


def _closes_later(number: int, frame: FrameType | None) -> bool:
    """Close all in another thread; says whether the program goes on until the signal comes again.

    It does so where code of ours was interrupted: it may hold a lock that closing needs, or a thread that
    judges, and lets it go within a moment.
    """
    global _closing
    if _closing is None:
        longest = max((monitor.exit_timeout for monitor in list(_running)), default=0.0)
        _closing = _Closing(thread(_close_all, name="steelyard-end"), time.monotonic() + longest + 1)
        _closing.thread.start()
    hinders = _HAS_MASK and is_ours(frame)
    _closing.thread.join(min(_closing.rest, _HINDERED) if hinders else _closing.rest)
    if not (hinders and _closing.rest and _closing.thread.is_alive()):
        return False
    again = threading.Timer(_MOMENT, signal.pthread_kill, (threading.get_ident(), number))
    again.daemon = True
    again.start()
    return True


def _after_fork() -> None:
    global _lock, _registered, _closing
    # A thread of the parent may have held it at the fork, and is not here to let it go.
    _lock = RLock()
    _running.clear()
    # Again, since some that fork forget the exit functions.
    _registered = False
    _closing = None
    for monitor in list(_forking):
        monitor.after_fork()


in_children(_after_fork)
