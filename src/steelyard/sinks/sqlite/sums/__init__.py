"""What a results file keeps beside its results, so that pages over many of them are fast.

`_keys` says which turns have a tag, version, route or judge; `_hours` has the sums of each metric and hour,
of all turns and by frequent tag. All of it is kept by triggers, in the transaction that writes a result, and
what cannot be kept so is added up again by `refresh_sums`. A file of an earlier version gets the tables when
it is next written to or served, and is read without them until then.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from steelyard._internal.sqlite import transaction
from steelyard.sinks.sqlite.sums import _hours, _keys
from steelyard.sinks.sqlite.sums._hours import ALL, BARS, SUM_COLUMNS, has_sums, metrics_of, summed_since
from steelyard.sinks.sqlite.sums._keys import has_keys

__all__ = [
    "ALL",
    "BARS",
    "SUM_COLUMNS",
    "drop_sums",
    "has_keys",
    "has_sums",
    "metrics_of",
    "prepare_sums",
    "refresh_sums",
    "summed_since",
]

_TABLES: Final = (
    *("hour_sums", "hour_bars", "hour_missing", "stale_hours", "turn_keys", "turn_keys_since", "tags"),
    # Of earlier versions.
    *("score_sums", "score_bars", "tag_sums", "tag_bars", "tag_missing"),
)


def prepare_sums(connection: sqlite3.Connection) -> None:
    """Make the tables and triggers where they are missing, in place of those of an earlier version.

    Raises:
        sqlite3.Error: If the file cannot be written.
    """
    if has_sums(connection):
        return
    with transaction(connection):
        if not has_sums(connection):  # another process may have been first
            drop_sums(connection)
            _keys.create(connection)
            _hours.create(connection)


def drop_sums(connection: sqlite3.Connection) -> None:
    """Take away all that is made out of the results: every trigger, and the tables that they fill."""
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    for table in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")


def refresh_sums(connection: sqlite3.Connection) -> bool:
    """Do a piece of what is to be added up, in one transaction of some milliseconds.

    Returns:
        Whether there was anything to do.

    Raises:
        sqlite3.Error: If the file cannot be written.
    """
    with transaction(connection):
        return _hours.refresh_hour(connection) or _keys.add_older(connection) or _hours.add_older(connection)
