"""How long results are kept: by age, by number of turns, by size of the file."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from steelyard.errors import ConfigurationError
from steelyard.results._schema import Execute

_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    **{unit: ("seconds", seconds) for unit, seconds in {"h": 3600, "d": 86_400, "w": 604_800}.items()},
    **{unit: ("bytes", size) for unit, size in {"kb": 1e3, "mb": 1e6, "gb": 1e9}.items()},
    "": ("turns", 1),
    "turns": ("turns", 1),
}
_STEP: Final = 200
"""Turns deleted in one transaction: some milliseconds, so that writers and readers hardly notice."""
_JUMP: Final = 3600.0
"""So far ahead within one step is no drift."""
_BELIEVED: Final = 86_400.0
"""Seconds after which a clock that jumped ahead is taken to be right: a wrong one is set back by then."""
_LIMIT: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s?([a-z]{0,5})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Retention:
    """What is kept; whatever exceeds any of the limits goes, the oldest first."""

    seconds: float | None = None
    """Age since the evaluation."""
    turns: int | None = None
    """Number of evaluated turns."""
    bytes: int | None = None
    """Size of the file, without what is free in it."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (isinstance(value, bool) or not value > 0):
                raise ConfigurationError(f"{field.name} to keep must be more than 0, not {value!r}")


class SteadyClock:
    """The time of day by which a sink deletes: what a clock that jumped ahead makes old is gone for good."""

    def __init__(self) -> None:
        """Begin with the time as it is."""
        self._day, self._running = time.time(), _running()

    def now(self) -> float:
        """The time; after a jump ahead, for a day, the one that it would be without."""
        day, running = time.time(), _running()
        expected = self._day + running - self._running
        if day - expected < _JUMP or running - self._running > _BELIEVED:
            self._day, self._running = day, running
            return day
        return expected


def _running() -> float:
    """Seconds that the machine has been on; where the system tells, with those in which it slept."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


def retention_from(given: str | int | Retention) -> Retention:
    """Limits as they are written: `"30d"`, `"12h"`, `"500MB"`, `100_000` (turns), or `"30d, 2GB"`."""
    if isinstance(given, Retention):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return Retention(turns=given)
    limits: dict[str, float] = {}
    for part in given.lower().split(",") if isinstance(given, str) else [""]:
        match = _LIMIT.fullmatch(part.strip())
        kind, factor = _UNITS.get(match[2], ("", 0.0)) if match else ("", 0.0)
        if match is None or not kind or kind in limits:
            raise ConfigurationError(
                f"keep must be an age ('30d', '12h'), a size ('2GB') or a number of turns, not {given!r}"
            )
        limits[kind] = float(match[1]) * factor
    return Retention(
        seconds=limits.get("seconds"),
        turns=int(limits["turns"]) if "turns" in limits else None,
        bytes=int(limits["bytes"]) if "bytes" in limits else None,
    )


def oldest_beyond(execute: Execute, keep: Retention, *, now: float, turns: int, used: int = 0) -> list[str]:
    """The records of the oldest turns that exceed a limit, at most 200 of them."""
    excess = 0 if keep.turns is None else turns - keep.turns
    if keep.bytes is not None and used > keep.bytes:
        excess = max(excess, -int(-turns * (used - keep.bytes) // used))
    before = float("-inf") if keep.seconds is None else now - keep.seconds
    query = "SELECT record_id, happened_at FROM evaluations ORDER BY happened_at, record_id LIMIT :step"
    oldest = execute(query, {"step": _STEP}).fetchall()
    return [record for place, (record, at) in enumerate(oldest) if place < excess or at < before]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruned:
    """What pruning did."""

    turns: int
    """Turns deleted."""
    left: int
    """Turns that are still there."""
    bytes_before: int
    """Size of the results before, in bytes, without what was free in their file."""
    bytes_after: int
    """Their size now. Postgres keeps the space of deleted rows, and uses it again."""


def prune(path: str | os.PathLike[str], *, keep: str | int | Retention) -> Pruned:
    """Delete the oldest results that exceed a limit.

    Others may read and write meanwhile: it is done in steps of 200 turns, each a transaction of milliseconds.

    Args:
        path: A file that `SQLiteSink` wrote, or the `postgresql://` address that `PostgresSink` writes to.
        keep: What to keep, as for these sinks.

    Raises:
        ConfigurationError: If there is no such file, it is not a results file, or `keep` means nothing there.
        MissingDependency: If psycopg is not installed.
        SinkError: If the database cannot be used.
        sqlite3.Error: If the file cannot be written, e.g. because another writer holds it for 10 seconds.
    """
    if isinstance(path, str) and path.startswith(("postgresql://", "postgres://")):
        from steelyard.results import PostgresSink

        return PostgresSink(path, keep=keep).prune()
    from steelyard.results._sqlite_sink import prune_file

    return prune_file(path, retention_from(keep))
