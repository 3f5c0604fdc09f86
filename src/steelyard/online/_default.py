"""The Monitor of recorders that were given none."""

from __future__ import annotations

import os
import threading

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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
