"""A lock that never waits for its own thread.

Spans end in finalizers, which the garbage collector runs anywhere, and in signal handlers, which run between
any two instructions of the main thread: also while that thread is inside the lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ExclusiveSection:
    """Bookkeeping that one thread at a time works on; whoever interrupts that thread is told to stay out."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._owner = 0

    @contextmanager
    def enter(self) -> Iterator[bool]:
        """Work on the bookkeeping.

        Yields:
            False where this thread is in the middle of it already; nothing may be touched then.
        """
        me = threading.get_ident()
        if self._owner == me:
            yield False
            return
        with self._changed:
            self._owner = me
            try:
                yield True
            finally:
                self._owner = 0

    def tell(self) -> None:
        """Wake who waits for a change; for the thread that is inside."""
        self._changed.notify_all()

    def wait(self, seconds: float | None) -> None:
        """Wait for a change, at most this long; for a thread that is outside."""
        with self._changed:
            self._changed.wait(seconds)
