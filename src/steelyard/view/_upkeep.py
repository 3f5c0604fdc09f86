"""Behind the pages: what makes the next one fast."""

from __future__ import annotations

import threading
import time

from steelyard.errors import ConfigurationError
from steelyard.report import refresh_results

# Hours that became stale meanwhile are read score by score, so that no figure is old.
_EVERY = 10.0


class Upkeep:
    """Adds up again what has become stale, in a thread, at most every ten seconds and one at a time."""

    def __init__(self, address: str, *, writes: bool) -> None:
        """Name the database, and whether it may be written to."""
        self._address, self._writes = address, writes
        self._lock = threading.Lock()
        self._next = 0.0

    def look(self) -> None:
        """Do what is due, behind the caller's back."""
        if not self._writes or time.monotonic() < self._next or not self._lock.acquire(blocking=False):
            return
        threading.Thread(target=self._run, daemon=True, name="steelyard-upkeep").start()

    def _run(self) -> None:
        try:
            refresh_results(self._address)
        except ConfigurationError:
            pass  # a page that reads the database says what is wrong with it
        finally:
            self._next = time.monotonic() + _EVERY
            self._lock.release()
