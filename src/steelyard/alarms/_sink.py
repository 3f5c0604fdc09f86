"""Where scored turns come from: a sink inside an application, or a database that any process writes to."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

from steelyard._internal.lazy import is_installed
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_words, redacted_url
from steelyard._internal.threads import DaemonExecutor
from steelyard.alarms._alarm import Alarm
from steelyard.alarms._watcher import DEFAULT_FILE, AlarmWatcher
from steelyard.results import ObservedMonitor, ResultsReader, open_results
from steelyard.scores import Evaluation

_log = SafeLogger("steelyard.alarms")
_BATCH = 500
_PAUSE = 1.0


class AlarmSink:
    """Looks at every scored turn as it is delivered, and reports a fall within that turn.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sink = AlarmSink([Alarm(metric="faithfulness", below=0.8)], file=f"{folder}/alarms.db")
        ...     sink.watcher.status()[0].state
        'quiet'
    """

    name = "alarms"

    def __init__(self, alarms: Iterable[Alarm], *, file: str = DEFAULT_FILE) -> None:
        """Open the file; nothing is started yet.

        Args:
            alarms: What to watch.
            file: Keeps what alarms know and what they have still to report; several processes may share it.

        Raises:
            ConfigurationError: If the file cannot be used, or two alarms have one name.
        """
        self.watcher = AlarmWatcher(alarms, file=file)
        # One thread, so that turns are taken into account in their order; a spare for one that hangs.
        self._thread = DaemonExecutor(name="steelyard-alarms-file", spares=1)

    def observe(self, monitor: ObservedMonitor) -> None:
        """Take from the Monitor its canaries."""
        options: Any = getattr(monitor, "options", None)
        if getattr(options, "canaries", None) is not None:
            self.watcher.canaries = _canaries_of(monitor)
        if is_installed("opentelemetry.trace"):
            from steelyard.sinks import observe_alarms

            observe_alarms(self.watcher)

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Take turns into account; messages are sent in the background.

        Raises:
            sqlite3.Error: If the file cannot be written.
        """
        self.watcher.start()
        await self._thread.run(self.watcher.take, evaluations)

    async def aclose(self) -> None:
        """Tell what is due, and end."""
        await self._thread.run(self.watcher.close)
        self._thread.shutdown()


def _canaries_of(monitor: Any) -> Callable[[], str]:
    """What a Monitor's canaries say at the moment of a fall; where they say nothing yet they are asked."""
    # Weak, since the sink is the Monitor's, and neither is to keep the other alive.
    known = weakref.ref(monitor)

    def words() -> str:
        there = known()
        if there is None:
            return ""
        reading = there.stats().canaries
        if reading is not None and reading.cause_of_fall == "judge":
            wrong = reading.asked - reading.right
            return f"the judge has changed: {wrong} of {reading.asked} probes with a known answer were wrong"
        # Their answers come too late for this message; the next one has them.
        there.ask_canaries()
        return "probes with a known answer are being asked whether it was the judge; its log tells"

    return words


class Follower:
    """Passes what is written to a database on to alarms, from a thread of its own.

    It begins with what is written from now on, and after a restart where it stopped. A database that cannot
    be read is tried again, second by second; it is logged the first time.
    """

    def __init__(self, watcher: AlarmWatcher, db: str, *, pause: float = _PAUSE) -> None:
        """Nothing is started yet.

        Args:
            watcher: The alarms.
            db: What is read: a results file, or the address of a database.
            pause: Seconds between two looks.
        """
        self._watcher = watcher
        self._db = db
        self._pause = pause
        self._end = threading.Event()
        self._thread = DaemonExecutor(name="steelyard-alarms-follow")
        self._warn = WarnOnce(_log)

    def start(self) -> None:
        self._watcher.start()
        self._thread.submit(self._run)

    def close(self) -> None:
        self._end.set()
        self._thread.shutdown()
        self._watcher.close()

    def _step(self, results: ResultsReader) -> bool:
        """Take what was written since the last time; returns whether more is waiting."""
        position = self._watcher.position(results.name)
        # The first time only the place is noted: what was written before is not news.
        if position is None:
            self._watcher.take([], source=results.name, position=results.position())
            return False
        written = results.written_after(position, limit=_BATCH)
        if written:
            evaluations = [evaluation for _, evaluation in written]
            self._watcher.take(evaluations, source=results.name, position=written[-1][0])
        return len(written) == _BATCH

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                # Opened here, since a results file can be read only in the thread that opened it.
                with closing(open_results(self._db)) as results:
                    while not self._end.is_set():
                        if not self._step(results):
                            self._end.wait(self._pause)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look may go well
                self._warn(
                    "read",
                    "alarms cannot read %s: %s; check the address, and that it can be read",
                    redacted_url(self._db) if "://" in self._db else self._db,
                    error_words(error),
                )
                self._end.wait(self._pause)
