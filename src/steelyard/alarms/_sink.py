"""Alarms inside an application: a sink beside those that store results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any

from steelyard._internal.threads import DaemonExecutor
from steelyard.alarms._alarm import Alarm
from steelyard.alarms._watcher import DEFAULT_FILE, AlarmWatcher
from steelyard.scores import Evaluation
from steelyard.sinks import Monitored


class AlarmSink:
    """Looks at every scored turn as it is delivered, and tells of a fall within that turn.

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
            file: Keeps what alarms know and what has still to be told; several processes may share it.

        Raises:
            ConfigurationError: If the file cannot be used, or two alarms have one name.
        """
        self.watcher = AlarmWatcher(alarms, file=file)
        self._thread = DaemonExecutor(name="steelyard-alarms-file", spares=1)
        self._pid = os.getpid()

    def observe(self, monitor: Monitored) -> None:
        """Take the lowest probability of a turn's being picked from the Monitor's selection."""
        options: Any = getattr(monitor, "options", None)
        self.watcher.smallest_inclusion = getattr(getattr(options, "selection", None), "floor", None)
        if find_spec("opentelemetry") is not None:
            from steelyard.sinks import observe_alarms

            observe_alarms(self.watcher)

    async def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Take turns into account; telling goes on in the background.

        Raises:
            sqlite3.Error: If the file cannot be written.
        """
        self.watcher.start()
        await self._thread.run(self.watcher.take, evaluations)

    async def aclose(self) -> None:
        """Tell what is due, and end."""
        await self._thread.run(self.watcher.close)
        self._thread.shutdown()
