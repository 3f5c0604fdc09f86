"""What Monitors and a spool are doing at this moment."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from steelyard._internal.redact import error_words
from steelyard._internal.sqlite import identity_of
from steelyard.errors import ConfigurationError
from steelyard.online import CanaryReading, QueueCounts, Spool, SpoolSettings
from steelyard.report import ResultsReader
from steelyard.report.queries import StoredCanaries, StoredRun
from steelyard.sinks import ObservedMonitor

_RUNS = 12
_DAY = 86_400.0
_COUNTED = ("seen", "accepted", "evaluated", "pending", "spooled", "abandoned")
_BY_REASON = ("skipped", "dead")


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveRow:
    """One Monitor's ledger."""

    where: str
    """Machine and process, or that it is this one."""
    age: float | None
    """Seconds since its counts were stored; None for the one in this process, whose counts are of now."""
    counts: Mapping[str, int]
    """Turns by what became of them, under the names that a Monitor's stats have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveState:
    """Everything at one moment."""

    at: float
    """When, as Unix time."""
    rows: tuple[LiveRow, ...]
    """The Monitor of this process, and those that stored counts within a day, the latest first."""
    spool: QueueCounts | None
    """The spool's ledger over all processes; None without a spool."""
    problem: str
    """Why the spool cannot be read, or empty."""


class LiveLook:
    """Looks at a Monitor in this process and at a spool file, and at the ledgers beside the results."""

    def __init__(self, *, monitor: ObservedMonitor | None, spool: Path | None) -> None:
        """Name them.

        Raises:
            ConfigurationError: If there is no spool at this path.
        """
        self._monitor, self._path = monitor, spool
        self._lock = threading.Lock()
        self._spool: Spool | None = None
        self._file: tuple[int, int] | None = None
        if spool is not None:
            if not spool.is_file():
                raise ConfigurationError(f"there is no spool {str(spool)!r}; check its path")
            SpoolSettings(path=spool)  # refuses what is not one

    def now(self, results: ResultsReader) -> LiveState:
        """The state at this moment."""
        at = time.time()
        # Monitors that ended long ago are of no interest here; the report has them.
        rows = [
            LiveRow(
                where=_where(run),
                age=max(at - run.updated_at, 0.0),
                counts=_turns(run.counts),
            )
            for run in results.runs(limit=_RUNS)
            if at - run.updated_at < _DAY
        ]
        spool, problem = self._counts()
        if self._monitor is not None:
            stats = self._monitor.stats()
            rows.insert(0, LiveRow(where="this process", age=None, counts=_turns(stats)))
            spool = spool or stats.spool
        return LiveState(at=at, rows=tuple(rows), spool=spool, problem=problem)

    def canaries(self, results: ResultsReader) -> list[tuple[str, CanaryReading | StoredCanaries]]:
        """What probes with a known answer say of judges, and whose Monitor asked them; the latest first."""
        stats = None if self._monitor is None else self._monitor.stats()
        own = getattr(stats, "canaries", None)
        found: list[tuple[str, CanaryReading | StoredCanaries]] = [("this process", own)] if own else []
        # What this process has stored is older than what it says.
        stored = (run for run in results.runs(limit=_RUNS) if not (own and run.pid == os.getpid()))
        found += [(_where(run), run.canaries) for run in stored if run.canaries is not None]
        return found

    def _counts(self) -> tuple[QueueCounts | None, str]:
        if self._path is None:
            return None, ""
        # A spool's connection is used by one thread at a time, and pages come side by side.
        with self._lock:
            try:
                # Another file may have taken its place; what is open would stay what it was.
                if (file := identity_of(self._path)) != self._file:
                    self._close()
                if not self._path.is_file():
                    return None, f"the spool {str(self._path)!r} is gone"
                if self._spool is None:
                    # It takes no leases; the time only must not lengthen what other processes wait for.
                    self._spool, self._file = Spool(self._path, lease_seconds=0.0), file
                return self._spool.counts(), ""
            except (sqlite3.Error, ConfigurationError) as error:
                self._close()
                if isinstance(error, ConfigurationError):
                    return None, str(error)
                return None, f"the spool {str(self._path)!r} cannot be read: {error_words(error)}"

    def _close(self) -> None:
        spool, self._spool = self._spool, None
        if spool is not None:
            with suppress(sqlite3.Error):
                spool.close()


def _where(run: StoredRun) -> str:
    return f"{run.host}, process {run.pid}"


def _turns(stats: object) -> dict[str, int]:
    numbers = {name: getattr(stats, name) for name in _COUNTED}
    return numbers | {name: sum(getattr(stats, name, {}).values()) for name in _BY_REASON}
