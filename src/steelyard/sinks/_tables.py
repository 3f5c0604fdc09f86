"""What the sinks that write our tables share: counts, bars by earlier scores, the time to delete."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, Final, Protocol, runtime_checkable
from weakref import ref

import numpy as np

from steelyard._internal.logs import SafeLogger
from steelyard.scores import Evaluation, Score
from steelyard.sinks._counts import ScoreCounts, ScoreLedger
from steelyard.sinks._retention import Retention, SteadyClock
from steelyard.sinks._sink import ObservedMonitor

WEEK: Final = 7 * 86_400.0
WEEKS: Final = 8
"""Weeks that are looked back."""
_SHARE: Final = 0.05
_LEAST: Final = 200
"""Scores below which a bar would be an anecdote."""
_LEAST_A_WEEK: Final = 50
EARLIER: Final = """SELECT happened_at, value, inclusion_probability FROM scores
    WHERE metric = :metric AND status = 'scored' AND value IS NOT NULL AND happened_at >= :since
    AND judge = :judge AND coalesce(prompt_version, '') = :prompt
    AND coalesce(metric_version, '') = :version AND options = :options
    ORDER BY happened_at DESC LIMIT 50000"""
"""The scores of one metric that were made as a given one was."""
COUNT_REPLAY: Final = (
    "CREATE TABLE IF NOT EXISTS replays (day TEXT PRIMARY KEY, calls INTEGER NOT NULL)",
    """INSERT INTO replays (day, calls) VALUES (:day, 1)
    ON CONFLICT (day) DO UPDATE SET calls = replays.calls + 1 WHERE replays.calls < :most RETURNING calls""",
)
"""One more call of a day, in one step, so that no two processes both make the last one; made by the first."""
_EVERY: Final = 5.0
Row = tuple[str, str, int, float, float, str]
_COUNTS: Final = ("seen", "accepted", "pending", "evaluated", "abandoned", "spooled", "skipped", "dead")
_OF_CANARIES: Final = ("judge", "state", "probes", "asked", "right", "low", "high", "changed_at")
_log = SafeLogger("steelyard.sinks")
_LOOK: Final = 60.0
"""Seconds between two looks at what exceeds the limits of `keep`."""


@runtime_checkable
class KnowsEarlierScores(Protocol):
    """A sink that can say what is usual, by what it has stored."""

    def baseline(self, like: Score, *, now: float) -> float | None:
        """The bar for scores made as this one was; None while too few are stored. May block."""


def values_of(like: Score, *, now: float) -> dict[str, Any]:
    """What `EARLIER` names."""
    made = like.provenance
    return {
        "metric": like.metric,
        "since": now - WEEKS * WEEK,
        "judge": made.judge if made else "",
        "prompt": made.prompt_version if made else "",
        "version": made.metric_version if made else "",
        "options": like.options,
    }


def bar_of(rows: Iterable[tuple[float, float, float]], *, lower_is_better: bool) -> float | None:
    """The value that 95 % of turns reach in the median week; a bad week or two do not move it.

    Args:
        rows: Time, value and inclusion probability of earlier scores.
        lower_is_better: Whether to reach it means to be below it.

    Returns:
        None if there are fewer than 200 scores, or they span less than a week.
    """
    found = sorted(rows)
    if len(found) < _LEAST or found[-1][0] - found[0][0] < WEEK:
        return None
    weeks: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for at, value, inclusion in found:
        weeks[int((found[-1][0] - at) // WEEK)].append((value, 1 / inclusion))
    ends = [_end(week, lower_is_better) for week in weeks.values() if len(week) >= _LEAST_A_WEEK]
    return median(ends) if ends else None


def _end(week: list[tuple[float, float]], lower_is_better: bool) -> float:
    """The weighted quantile beyond which the worst 5 % of turns lie."""
    values, weights = np.array(sorted(week, reverse=lower_is_better)).T
    return float(values[np.searchsorted(np.cumsum(weights), _SHARE * weights.sum())])


class MonitorLedger:
    """Stores each Monitor's counts in the `ledger` table, at most every five seconds and at the end.

    Turns that were not judged have no row among the results; without these counts nobody could tell later
    how many there were, and why.
    """

    def __init__(self) -> None:
        """There is no Monitor yet."""
        self._monitors: list[ref[ObservedMonitor]] = []
        self._runs: dict[tuple[int, int], tuple[str, float]] = {}
        self._next = 0.0

    def observe(self, monitor: ObservedMonitor) -> None:
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
    if (canaries := getattr(stats, "canaries", None)) is not None:
        found["canaries"] = {name: getattr(canaries, name) for name in _OF_CANARIES}
    # What no picked turn lies below: turns that are seldom picked may be absent from a report's period.
    floor = getattr(getattr(monitor, "options", None), "floor", None)
    return found if floor is None else {**found, "floor": floor}


class TablesSink:
    """Counts of Scores, counts of Monitors, and the moments at which old results are deleted."""

    def __init__(self, name: str, keep: Retention | None) -> None:
        self.name = name
        self._keep = keep
        self._clock = SteadyClock()
        self._next_look = 0.0
        self._ledger = ScoreLedger(name)
        self._monitors = MonitorLedger()

    @property
    def counts(self) -> ScoreCounts:
        """What became of the Scores this sink was given."""
        return self._ledger.counts

    def observe(self, monitor: ObservedMonitor) -> None:
        """Store what the Monitor says of turns that were not judged, in the `ledger` table."""
        self._monitors.observe(monitor)

    def _say_unstorable(self, refused: Sequence[Evaluation], problem: str) -> None:
        if refused and not self.counts.refused:
            _log.warning(
                "%s: an evaluation cannot be stored (%s); further ones are only counted", self.name, problem
            )

    def _delete_what_exceeds(self, delete: Callable[[Retention, float], int]) -> None:
        """Delete a part of what exceeds the limits: once a minute, or with each write where there is more."""
        if self._keep is not None and time.monotonic() >= self._next_look:
            deleted = delete(self._keep, self._clock.now())
            self._next_look = time.monotonic() + (0 if deleted else _LOOK)
