"""Alarms beside a results database: what any process writes there is looked at here."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_words
from steelyard._internal.threads import DaemonExecutor
from steelyard._internal.warn_once import WarnOnce
from steelyard.alarms._watcher import AlarmWatcher
from steelyard.scores import Evaluation

_log = SafeLogger("steelyard.alarms")
_BATCH = 500
_PAUSE = 1.0


class WrittenResults(Protocol):
    """Results in the order in which they were written, as `steelyard.report.ResultsReader` gives them."""

    @property
    def name(self) -> str:
        """The database's name."""

    def position(self) -> int:
        """Where writing has got to."""

    def written_after(self, position: int, *, limit: int) -> Sequence[tuple[int, Evaluation]]:
        """What was written after a position, each with its own."""


class Follower:
    """Passes what is written to a database on to alarms, from a thread of its own.

    It begins with what is written from now on, and after a restart where it stopped. A database that cannot
    be read is tried again, second by second; it is logged the first time.
    """

    def __init__(self, watcher: AlarmWatcher, results: WrittenResults, *, pause: float = _PAUSE) -> None:
        """Nothing is started yet.

        Args:
            watcher: The alarms.
            results: What is read.
            pause: Seconds between two looks.
        """
        self._watcher = watcher
        self._results = results
        self._pause = pause
        self._end = threading.Event()
        self._thread = DaemonExecutor(name="steelyard-alarms-follow")
        self._warn = WarnOnce(_log)

    def start(self) -> None:
        """Begin."""
        self._watcher.start()
        self._thread.submit(self._run)

    def close(self) -> None:
        """End, after telling what is due."""
        self._end.set()
        self._thread.shutdown()
        self._watcher.close()

    def step(self) -> int:
        """Take what was written since the last time; returns how many turns that were.

        Raises:
            ConfigurationError: If the database cannot be read.
            sqlite3.Error: If the file of alarms cannot be written.
        """
        source = self._results.name
        position = self._watcher.position(source)
        # The first time only the place is noted: what was written before is not news.
        if position is None:
            self._watcher.take([], source=source, position=self._results.position())
            return 0
        written = self._results.written_after(position, limit=_BATCH)
        if written:
            evaluations = [evaluation for _, evaluation in written]
            self._watcher.take(evaluations, source=source, position=written[-1][0])
        return len(written)

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                full = self.step() == _BATCH
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look may go well
                self._warn(
                    "read",
                    "alarms cannot read %s: %s; check the address, and that it can be read",
                    self._results.name,
                    error_words(error),
                )
                full = False
            # A full batch means that more is waiting, and is not paused after.
            if not full:
                self._end.wait(self._pause)
