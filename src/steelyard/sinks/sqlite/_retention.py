"""Old results deleted from a SQLite file, and their space given back."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from typing import Final

from steelyard._internal.sqlite import transaction
from steelyard.errors import ConfigurationError
from steelyard.sinks._retention import Pruned, Retention
from steelyard.sinks.sqlite._file import absolute, check_ours, prepare

STEP: Final = 200
"""Turns deleted in one transaction: some milliseconds, so that writers and readers hardly notice."""


def prune_file(path: str | os.PathLike[str], limits: Retention) -> Pruned:
    """Delete the oldest results that exceed a limit, and give their space back; see `steelyard.sinks.prune`.

    Raises:
        ConfigurationError: If there is no such file, or it is not a results file.
        sqlite3.Error: If it cannot be written.
    """
    file = absolute(path)
    if not os.path.isfile(file):
        raise ConfigurationError(f"there is no results file {os.fspath(path)!r}; check its name")
    check_ours(file)
    with closing(sqlite3.connect(file, timeout=10, isolation_level=None)) as connection:
        prepare(connection, file)
        before = used_bytes(connection)
        turns, left = 0, count_turns(connection)
        while deleted := delete_oldest(connection, limits, now=time.time(), turns=left):
            turns += deleted
            left -= deleted
        left = count_turns(connection)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Pruned(turns=turns, left=left, bytes_before=before, bytes_after=used_bytes(connection))


def count_turns(connection: sqlite3.Connection) -> int:
    """How many turns there are; of a million it takes as long as deleting a few hundred."""
    return int(connection.execute("SELECT COUNT(*) FROM evaluations").fetchone()[0])


def used_bytes(connection: sqlite3.Connection) -> int:
    """Size of the database without what is free in it."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def delete_oldest(
    connection: sqlite3.Connection, keep: Retention, *, now: float, turns: int | None = None
) -> int:
    """Delete the oldest turns that exceed a limit, at most 200, in one transaction.

    Args:
        connection: Of the file.
        keep: The limits.
        now: Unix time.
        turns: How many turns there are, for a caller that has counted them.

    Returns:
        How many were deleted; 0 where nothing exceeds a limit.
    """
    with transaction(connection):
        ids = _oldest(connection, keep, now, count_turns(connection) if turns is None else turns)
        for table in ("scores", "screened", "bodies", "evaluations"):
            connection.executemany(f"DELETE FROM {table} WHERE record_id = ?", ids)
    if ids:
        connection.executescript("PRAGMA incremental_vacuum")  # `execute` would free a single page
    return len(ids)


def _oldest(connection: sqlite3.Connection, keep: Retention, now: float, turns: int) -> list[tuple[str]]:
    excess = 0
    if keep.turns is not None:
        excess = max(excess, turns - keep.turns)
    if keep.bytes is not None and turns and (used := used_bytes(connection)) > keep.bytes:
        excess = max(excess, -int(-turns * (used - keep.bytes) // used))
    before = 0.0 if keep.seconds is None else now - keep.seconds
    if excess < STEP and before:
        query = "SELECT COUNT(*) FROM (SELECT 1 FROM evaluations WHERE happened_at < ? LIMIT ?)"
        excess = max(excess, connection.execute(query, (before, STEP)).fetchone()[0])
    return connection.execute(
        "SELECT record_id FROM evaluations ORDER BY happened_at LIMIT ?", (min(excess, STEP),)
    ).fetchall()
