"""How long results are kept: by age, by number of turns, by size of the file."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from steelyard.errors import ConfigurationError

_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    **{unit: ("seconds", seconds) for unit, seconds in {"h": 3600, "d": 86_400, "w": 604_800}.items()},
    **{unit: ("bytes", size) for unit, size in {"kb": 1e3, "mb": 1e6, "gb": 1e9}.items()},
    "": ("turns", 1),
    "turns": ("turns", 1),
}
_LIMIT: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s?([a-z]{0,5})")
_STEP: Final = 200
"""Turns deleted in one transaction: some milliseconds, so that writers and readers hardly notice."""


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


def retention_from(given: str | int | Retention) -> Retention:
    """Limits as they are written: `"30d"`, `"12h"`, `"500MB"`, `100_000` (turns), or `"30d, 2GB"`.

    Raises:
        ConfigurationError: If it is none of these.
    """
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


def used_bytes(connection: sqlite3.Connection) -> int:
    """Size of the database without what is free in it."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def delete_oldest(connection: sqlite3.Connection, keep: Retention, *, now: float | None = None) -> int:
    """Delete the oldest turns that exceed a limit, at most 200, in one transaction.

    Returns:
        How many were deleted; 0 where nothing exceeds a limit.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        ids = _oldest(connection, keep, time.time() if now is None else now)
        for table in ("scores", "bodies", "evaluations"):
            connection.executemany(f"DELETE FROM {table} WHERE record_id = ?", ids)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    if ids:
        connection.executescript("PRAGMA incremental_vacuum")  # `execute` would free a single page
    return len(ids)


def _oldest(connection: sqlite3.Connection, keep: Retention, now: float) -> list[tuple[str]]:
    (turns,) = connection.execute("SELECT COUNT(*) FROM evaluations").fetchone()
    excess = 0
    if keep.turns is not None:
        excess = max(excess, turns - keep.turns)
    if keep.bytes is not None and turns and (used := used_bytes(connection)) > keep.bytes:
        excess = max(excess, -int(-turns * (used - keep.bytes) // used))
    before = 0.0 if keep.seconds is None else now - keep.seconds
    if excess < _STEP and before:
        query = "SELECT COUNT(*) FROM (SELECT 1 FROM evaluations WHERE evaluated_at < ? LIMIT ?)"
        excess = max(excess, connection.execute(query, (before, _STEP)).fetchone()[0])
    return connection.execute(
        "SELECT record_id FROM evaluations ORDER BY evaluated_at LIMIT ?", (min(excess, _STEP),)
    ).fetchall()
