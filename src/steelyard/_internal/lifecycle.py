"""What happens to running Monitors when the interpreter exits and in a forked child."""

from __future__ import annotations

import atexit
import os
import threading
import time
from typing import Protocol
from weakref import WeakSet


class _Closes(Protocol):
    @property
    def exit_timeout(self) -> float: ...
    def flush(self, timeout: float) -> int: ...
    def stop(self) -> None: ...
    def close(self, timeout: float, *, grace: float | None = None) -> int: ...


class _Forks(Protocol):
    def after_fork(self) -> None: ...


# Re-entrant: a finalizer that closes a Monitor may run while this very thread holds it.
_lock = threading.RLock()
# Of the one second that `_close_all` allows; the rest is for threads that end a little late.
_GRACE = 0.8
_running: set[_Closes] = set()
_registered = False
# Weak, since a Monitor that nobody uses any more must be able to go.
_forking: WeakSet[_Forks] = WeakSet()


def at_exit(monitor: _Closes) -> None:
    """Close a Monitor's run when the interpreter exits.

    Called when it starts rather than when it is made: exit functions run last in, first out, so the exporters
    that it writes to, which were set up before the first turn, are still open then.
    """
    global _registered
    with _lock:
        _running.add(monitor)
        if not _registered:
            _registered = True
            atexit.register(_close_all)


def forget(monitor: _Closes) -> None:
    """A Monitor's run has been closed."""
    with _lock:
        _running.discard(monitor)


def _close_all() -> None:
    """Close all side by side: however many hang, the program ends one second after the longest time given."""
    # A copy: closing takes Monitors out of the set.
    monitors, started = list(_running), time.monotonic()
    for monitor in monitors:
        monitor.flush(max(0.0, started + monitor.exit_timeout - time.monotonic()))
    # All are asked to stop before the first is waited for.
    for monitor in monitors:
        monitor.stop()
    ended = time.monotonic() + _GRACE
    for monitor in monitors:
        monitor.close(0, grace=max(0.0, ended - time.monotonic()))


def on_fork(monitor: _Forks) -> None:
    """Let a Monitor know when it finds itself in a forked child."""
    _forking.add(monitor)


def _after_fork() -> None:
    global _lock
    # A thread of the parent may have held it at the fork, and is not here to let it go.
    _lock = threading.RLock()
    _running.clear()
    for monitor in list(_forking):
        monitor.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
