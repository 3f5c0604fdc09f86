"""What the Monitors of this process did with every turn, kept beside the results."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import time
import uuid
from typing import Any, Final
from weakref import ref

from steelyard.sinks._sink import Monitored

_EVERY: Final = 5.0
Row = tuple[str, str, int, float, float, str]
_COUNTS: Final = ("seen", "accepted", "pending", "evaluated", "abandoned", "spooled", "skipped", "dead")


class MonitorLedger:
    """Stores each Monitor's counts in the `ledger` table, at most every five seconds and at the end.

    Turns that were not judged have no row among the results; without these counts nobody could tell later
    how many there were, and why.
    """

    def __init__(self) -> None:
        """There is no Monitor yet."""
        self._monitors: list[ref[Monitored]] = []
        self._runs: dict[tuple[int, int], tuple[str, float]] = {}
        self._next = 0.0

    def observe(self, monitor: Monitored) -> None:
        """Keep the counts of this Monitor too."""
        self._monitors.append(ref(monitor))
        self._run_of(len(self._monitors) - 1)

    @property
    def is_due(self) -> bool:
        """Whether the stored counts are old."""
        return bool(self._monitors) and time.monotonic() >= self._next

    def rows(self) -> list[Row]:
        """One row of the `ledger` table for each Monitor, as of now; they are due again in five seconds."""
        self._next = time.monotonic() + _EVERY
        rows = []
        for number, alive in enumerate(self._monitors):
            if (monitor := alive()) is None:
                continue
            run, started = self._run_of(number)
            counts = json.dumps(_counts_of(monitor), separators=(",", ":"))
            rows.append((run, platform.node(), os.getpid(), started, time.time(), counts))
        return rows

    def _run_of(self, number: int) -> tuple[str, float]:
        """A forked child counts from 0, and so has a row of its own."""
        return self._runs.setdefault((os.getpid(), number), (uuid.uuid4().hex, time.time()))


def store_counts(connection: sqlite3.Connection, rows: list[Row]) -> None:
    """Insert or replace one row for each Monitor.

    Raises:
        sqlite3.Error: If the file cannot be written.
    """
    connection.executemany(
        "INSERT INTO ledger (run, host, pid, started_at, updated_at, counts) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run) "
        "DO UPDATE SET updated_at = excluded.updated_at, counts = excluded.counts",
        rows,
    )


def _counts_of(monitor: Any) -> dict[str, Any]:
    stats = monitor.stats()
    counts = {name: getattr(stats, name) for name in _COUNTS}
    found = {name: value if isinstance(value, int) else dict(value) for name, value in counts.items()}
    # What no picked turn lies below: turns that are seldom picked may be absent from a report's period.
    selection = getattr(getattr(monitor, "options", None), "selection", None)
    floor = getattr(selection, "floor", None)
    return found if floor is None else {**found, "floor": floor}
