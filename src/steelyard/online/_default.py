"""The Monitor of recorders that were given none."""

from __future__ import annotations

import threading

from steelyard._internal.forks import in_children
from steelyard.online.monitor import Monitor

_lock = threading.RLock()
_shared: Monitor | None = None


def default_monitor() -> Monitor:
    """The Monitor of recorders that were given none: one for the whole process, made at first use."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = Monitor()
        return _shared


def _after_fork() -> None:
    """Another thread may have been making it in the parent."""
    global _lock
    _lock = threading.RLock()


in_children(_after_fork)
