"""Alarms inside an application: a sink beside those that store results."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from steelyard._internal.lazy import is_installed
from steelyard._internal.threads import DaemonExecutor
from steelyard.alarms._alarm import Alarm
from steelyard.alarms._watcher import DEFAULT_FILE, AlarmWatcher
from steelyard.scores import Evaluation
from steelyard.sinks import ObservedMonitor


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
