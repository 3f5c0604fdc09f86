"""What a results file keeps beside its results, so that pages over many of them are fast; SQL alone fills it.

`_keys` says which turns have a tag, version, route or judge; `_hours` has the sums of each metric and hour;
`_tags` has the same for each frequent tag. All of it is kept by triggers, in the transaction that writes a
result, and what cannot be kept so is added up again by `refresh_sums`. A file of an earlier version gets the
tables when it is next written to or served, and is read without them until then.
"""

from __future__ import annotations

import sqlite3

from steelyard._internal.sqlite import transaction
from steelyard.sinks.sqlite.sums import _hours, _keys, _tags
from steelyard.sinks.sqlite.sums._columns import BARS, SUM_COLUMNS
from steelyard.sinks.sqlite.sums._hours import has_sums, metrics_of
from steelyard.sinks.sqlite.sums._keys import has_keys
from steelyard.sinks.sqlite.sums._tags import summed_since

__all__ = [
    "BARS",
    "SUM_COLUMNS",
    "has_keys",
    "has_sums",
    "metrics_of",
    "prepare_sums",
    "refresh_sums",
    "summed_since",
]


def prepare_sums(connection: sqlite3.Connection) -> None:
    """Make the tables and triggers where they are missing.

    Raises:
        sqlite3.Error: If the file cannot be written.
    """
    if has_sums(connection) and _tags.has_tags(connection):
        return
    with transaction(connection):  # another process may have been first
        if _hours.columns_missing(connection, "score_sums") == list(SUM_COLUMNS):
            _hours.create(connection)
        elif not has_sums(connection):
            _widen(connection)
        if not _tags.has_tags(connection):
            _hours.make_triggers(connection)
            _keys.create(connection)
            _tags.create(connection)


def _widen(connection: sqlite3.Connection) -> None:
    """Add the sums that an earlier version did not keep, and have all of them added up."""
    tables = ("score_sums", "tag_sums") if _tags.has_tags(connection) else ("score_sums",)
    for table in tables:
        for name in _hours.columns_missing(connection, table):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} REAL NOT NULL DEFAULT 0")
    _hours.make_all_stale(connection)
    _hours.make_triggers(connection)
    if len(tables) > 1:
        _tags.make_trigger(connection)


def refresh_sums(connection: sqlite3.Connection) -> bool:
    """Do a piece of what is to be added up, in one transaction of some milliseconds.

    Returns:
        Whether there was anything to do.

    Raises:
        sqlite3.Error: If the file cannot be written.
    """
    with transaction(connection):
        return _refresh_hour(connection) or _keys.add_older(connection) or _tags.add_older(connection)


def _refresh_hour(connection: sqlite3.Connection) -> bool:
    """Add up the latest stale hour again."""
    (hour,) = connection.execute("SELECT max(hour) FROM stale_hours").fetchone()
    if hour is None:
        return False
    _hours.add_up(connection, int(hour))
    _tags.add_up_again(connection, int(hour))
    connection.execute("DELETE FROM stale_hours WHERE hour = ?", (hour,))
    return True
