"""Labels in a table of their own beside the results in a SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from steelyard._internal.redact import error_words
from steelyard._internal.sqlite import transaction
from steelyard.errors import ConfigurationError
from steelyard.probing import JudgeCheck
from steelyard.report.checks import row_of_check
from steelyard.report.labels import COLUMNS, Label
from steelyard.sinks import connect_readonly

_SCHEMA: Final = 2
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS labels_schema (version INTEGER NOT NULL)",
    """CREATE TABLE IF NOT EXISTS labels (
        record_id TEXT NOT NULL, metric TEXT, claim INTEGER, value TEXT NOT NULL,
        note TEXT NOT NULL, who TEXT NOT NULL, labelled_at REAL NOT NULL, drawn REAL
    )""",
    """CREATE UNIQUE INDEX IF NOT EXISTS labels_by_what_and_who
        ON labels (record_id, ifnull(metric, ''), ifnull(claim, -1), who)""",
)
_PUT: Final = """INSERT INTO labels (record_id, metric, claim, value, note, who, labelled_at, drawn)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (record_id, ifnull(metric, ''), ifnull(claim, -1), who) DO UPDATE
    SET value = excluded.value, note = excluded.note, labelled_at = excluded.labelled_at,
        drawn = coalesce(excluded.drawn, labels.drawn)
    WHERE excluded.labelled_at >= labels.labelled_at"""


class SQLiteLabels:
    """A `LabelStore` in a results file, which is opened for each call, so that it may be replaced."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Name the database.

        Args:
            path: A file that `SQLiteSink` wrote; its permissions stay as they are.
        """
        self._path = os.fspath(path)

    def put(self, labels: Iterable[Label]) -> int:
        with self._writing() as connection:
            return sum(connection.execute(_PUT, label.row()).rowcount for label in labels)

    def remove(self, record_id: str, *, metric: str | None, claim: int | None, who: str) -> None:
        with self._writing() as connection:
            connection.execute(
                "DELETE FROM labels WHERE record_id = ? AND metric IS ? AND claim IS ? AND who = ?",
                (record_id, metric, claim, who),
            )

    def put_check(self, check: JudgeCheck, *, checked_at: float) -> None:
        with _writable(self._path) as connection, transaction(connection):
            connection.execute(
                "INSERT INTO judge_checks (checked_at, judge, figures) VALUES (?, ?, ?)",
                row_of_check(check, checked_at),
            )

    def of(self, record_id: str) -> list[Label]:
        return list(self._read("WHERE record_id = ?", record_id))

    def __iter__(self) -> Iterator[Label]:
        return self._read("")

    def _read(self, where: str, *values: str) -> Iterator[Label]:
        with closing(connect_readonly(self._path)) as connection:
            try:
                version = _version(connection, self._path)
                if not version:
                    return
                # Nobody wrote down how turns were chosen before version 2.
                columns = ", ".join(COLUMNS) if version > 1 else f"{', '.join(COLUMNS[:-1])}, NULL"
                query = f"SELECT {columns} FROM labels {where} ORDER BY labelled_at, rowid"
                rows = connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise ConfigurationError(
                    f"{self._path!r} cannot be read: {error_words(error)}; check that it is a results file"
                ) from None
        yield from map(Label.of_row, rows)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, in a file that was there before."""
        with _writable(self._path) as connection, transaction(connection):
            version = _version(connection, self._path)
            if not version:
                for statement in _TABLES:
                    connection.execute(statement)
            elif version < _SCHEMA:
                connection.execute("ALTER TABLE labels ADD COLUMN drawn REAL")
            if version < _SCHEMA:
                connection.execute("INSERT INTO labels_schema VALUES (?)", (_SCHEMA,))
            yield connection


def _version(connection: sqlite3.Connection, path: str) -> int:
    """Of the tables for labels; 0 if there are none.

    Raises:
        ConfigurationError: If a newer version made them.
    """
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'labels_schema'").fetchone()
    if found is None:
        return 0
    version: int
    (version,) = connection.execute("SELECT max(version) FROM labels_schema").fetchone()
    if version > _SCHEMA:
        raise ConfigurationError(f"the labels in {path!r} have schema {version}; update steelyard")
    return version


@contextmanager
def _writable(path: str) -> Iterator[sqlite3.Connection]:
    """A connection that may write to a results file that is there; it begins no transaction by itself."""
    connect_readonly(path).close()  # refuses what is not a results file
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None)) as connection:
            yield connection
    except sqlite3.Error as error:
        said, mend = error_words(error), "give it the right to be written, and its folder too"
        if "SQLITE_BUSY" in said:
            mend = "another program has locked it: try again"
        raise ConfigurationError(f"{path!r} cannot be written: {said}; {mend}") from None
