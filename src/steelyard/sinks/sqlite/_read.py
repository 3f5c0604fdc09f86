"""Reading results back from a file that `SQLiteSink` wrote."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_words
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.scores import Evaluation
from steelyard.sinks.sqlite._file import absolute, bring_up_to_date, check_ours
from steelyard.sinks.sqlite._rows import read_evaluation
from steelyard.sinks.sqlite._schema import SQLITE_SCHEMA

_log = SafeLogger("steelyard.sinks")


def read_evaluations(
    path: str | os.PathLike[str] = "steelyard.db",
    *,
    metric: str | None = None,
    trace_id: str | None = None,
    since: float | None = None,
    until: float | None = None,
    newest_first: bool = False,
    limit: int | None = None,
) -> Iterator[Evaluation]:
    """Evaluations from a file that `SQLiteSink` wrote, while it may still be written to.

    Args:
        path: The file.
        metric: Only records with a Score of this instance name, and only that Score.
        trace_id: Only records of this trace.
        since: Only turns that began at or after this Unix time.
        until: Only turns that began before this Unix time.
        newest_first: The latest first instead of the earliest.
        limit: At most so many.

    Raises:
        ConfigurationError: If there is no such file, or it holds no results of this version.
    """
    wanted: list[tuple[str, Any]] = [
        ("trace_id = ?", trace_id),
        ("happened_at >= ?", since),
        ("happened_at < ?", until),
        ("record_id IN (SELECT record_id FROM scores WHERE metric = ?)", metric),
    ]
    given = [(condition, value) for condition, value in wanted if value is not None]
    where = " AND ".join(condition for condition, _ in given) or "1"
    order = "DESC" if newest_first else "ASC"
    query = f"SELECT * FROM evaluations WHERE {where} ORDER BY happened_at {order}, record_id {order} LIMIT ?"
    values = [value for _, value in given]
    bad = 0
    with closing(connect_readonly(path)) as connection:
        connection.row_factory = sqlite3.Row
        for row in connection.execute(query, [*values, -1 if limit is None else limit]):
            try:
                evaluation = read_evaluation(connection, row, metric=metric)
            except InvalidRecord:
                bad += 1
            else:
                yield evaluation
    if bad:
        _log.warning("%s: %d evaluations cannot be read and were left out", os.fspath(path), bad)


def evaluation_of(connection: sqlite3.Connection, record_id: str) -> Evaluation | None:
    """The Evaluation of one record, over a connection of `connect_readonly`; None where there is none.

    Raises:
        InvalidRecord: If what is stored is not an Evaluation.
    """
    before, connection.row_factory = connection.row_factory, sqlite3.Row
    try:
        row = connection.execute("SELECT * FROM evaluations WHERE record_id = ?", (record_id,)).fetchone()
        if row is None:
            return None
        return read_evaluation(connection, row)
    finally:
        connection.row_factory = before


def connect_readonly(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """A connection for queries of your own over the tables `evaluations` and `scores`; it cannot write.

    A file of an earlier version is brought up to date first.

    Raises:
        ConfigurationError: If there is no such file, it holds no results, or it is of an earlier version and
            cannot be written.
    """
    file = Path(absolute(path))
    if not file.is_file():
        raise ConfigurationError(
            f"there is no results file {os.fspath(path)!r}; a Monitor makes one in the folder of its "
            "program; name that one"
        )
    check_ours(str(file))
    if not file.stat().st_size:
        raise ConfigurationError(
            f"{os.fspath(path)!r} is empty: it holds no results; "
            "name another file, or wait for the first turn"
        )
    # In a folder that cannot be written, SQLite cannot make the files that WAL needs; nor can anybody else.
    frozen = not os.access(file.parent, os.W_OK) and not Path(f"{file}-wal").exists()
    connection = sqlite3.connect(
        f"{file.as_uri()}?mode=ro{'&immutable=1' if frozen else ''}", uri=True, timeout=5
    )
    try:
        if 0 < connection.execute("PRAGMA user_version").fetchone()[0] < SQLITE_SCHEMA:
            bring_up_to_date(str(file))
        connection.execute("SELECT 1 FROM scores, evaluations LIMIT 0")
    except sqlite3.Error as error:
        connection.close()
        raise ConfigurationError(
            f"{os.fspath(path)!r} is not a results file: {error_words(error)}; name one that SQLiteSink wrote"
        ) from error
    return connection
