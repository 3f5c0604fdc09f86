"""One SQLite file of results: recognising our own, refusing all others, bringing old ones up to date."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import stat
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from steelyard._internal.forks import transaction
from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError, InvalidRecord
from steelyard.results._earlier import copy_results
from steelyard.results._schema import rows_of, schema, screened_rows, upsert
from steelyard.scores import Evaluation, evaluation_from_dict

_log = SafeLogger("steelyard.sinks")
MEMORY: Final = ":memory:"
SCHEMA: Final = 9
"""Version of the tables, kept in `PRAGMA user_version`. Version 0.1.0 wrote 1."""
APPLICATION_ID: Final = 0x53544C59
"""In `PRAGMA application_id` of every results database from schema 2 on: "STLY"."""
_FIRST_COLUMNS: Final = {
    "evaluations": {"record_id", "evaluated_at", "record_status", "reasked", "json"},
    "scores": {"id", "record_id", "inclusion_probability", "prompt_version", "json"},
}
"""By these a database of schema 1 is known, which had no application id."""
_DERIVED: Final = (
    *("hour_sums", "hour_bars", "hour_missing", "stale_hours", "tags", "turn_keys", "turn_keys_since"),
    *("score_sums", "score_bars", "tag_sums", "tag_bars", "tag_missing", "labels_schema"),
)
"""What earlier versions made out of their results."""
_TYPES: Final = {"serial": "INTEGER", "blob": "BLOB", "real": "REAL", "json": "TEXT"}
_KEYS: Final = (
    # Which turns have a tag, a version, a route or a judge: what stands in JSON or other rows.
    """CREATE TABLE IF NOT EXISTS turn_keys (
        kind TEXT NOT NULL, value TEXT NOT NULL, happened_at REAL NOT NULL,
        record_id TEXT NOT NULL, turn INTEGER NOT NULL,
        PRIMARY KEY (kind, value, happened_at, record_id)) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS turn_keys_by_record ON turn_keys (record_id)",
)
_PLACE: Final = "e.happened_at, e.record_id, e.turn FROM evaluations e"
_FIELD: Final = """SELECT '{0}', CAST(json_extract(e.metadata, '$.{0}') AS TEXT), {1}
    WHERE e.record_id = :id AND json_extract(e.metadata, '$.{0}') IS NOT NULL"""
_FIND_BY: Final = f"""INSERT INTO turn_keys
    SELECT 'tag', t.value, {_PLACE} JOIN json_each(e.tags) t WHERE e.record_id = :id AND t.type = 'text'
    UNION {_FIELD.format("version", _PLACE)} UNION {_FIELD.format("route", _PLACE)}
    UNION SELECT 'judge', s.judge, {_PLACE} JOIN scores s ON s.record_id = e.record_id
    WHERE e.record_id = :id AND s.judge IS NOT NULL"""


def write_evaluation(connection: sqlite3.Connection, evaluation: Evaluation) -> None:
    """Insert an Evaluation or replace the rows of the same results; in the caller's transaction."""
    first, rows, packed = rows_of(evaluation)
    record = {"id": first["record_id"]}
    insert = "INSERT INTO bodies (record_id, body) VALUES (?, ?)"
    body = connection.execute(insert, (first["record_id"], packed)).lastrowid
    written = connection.execute(
        f"{upsert('evaluations', 'record_id', first)} RETURNING turn", {**first, "body": body}
    )
    ((turn,),) = written.fetchall()
    for row in rows:
        connection.execute(upsert("scores", "id", row), {**row, "turn": turn, "body": body})
    for row in screened_rows(evaluation, first):
        connection.execute(upsert("screened", "record_id, metric", row), row)
    connection.execute("DELETE FROM turn_keys WHERE record_id = :id", record)
    connection.execute(_FIND_BY, record)
    # The body that was replaced, unless a score of another metric still rests on it.
    connection.execute(
        "DELETE FROM bodies WHERE record_id = :id AND id <> :body "
        "AND id NOT IN (SELECT body FROM scores WHERE record_id = :id)",
        {**record, "body": body},
    )


def absolute(path: str | os.PathLike[str]) -> str:
    """The path, fixed now: the process may change its folder before the first write."""
    given = os.fspath(path)
    return given if given == MEMORY else os.path.abspath(given)


def check_folder(path: str | os.PathLike[str]) -> None:
    """See whether a file could be made here."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"results cannot be written to {os.fspath(path)!r}: its folder is missing or cannot be written; "
            "make the folder, or give a path in another one"
        )


def claim_file(path: str) -> None:
    """Make the file, private, where there is none; refuse what is not ours, without touching it."""
    if path == MEMORY:
        return
    file = Path(path)
    try:
        # Following such a link would make a file somewhere else.
        if file.is_symlink() and not file.exists():
            raise ConfigurationError(f"{path!r} is a link to a file that does not exist; give another path")
        # Refuses what is there, in one step: a check before it could be overtaken by another process.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        check_ours(path)
    except OSError as error:
        raise ConfigurationError(
            f"results cannot be written to {path!r}: {error.strerror}; "
            "give SQLiteSink a path in a folder that can be written"
        ) from None


def check_ours(path: str) -> None:
    """Refuse a file that is not a results database, an empty one apart; it is only read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ConfigurationError(
                f"results cannot be written to {path!r}: it is not a file; name another path"
            )
        # Through SQLite only: to open and close the file besides it would drop this process's locks on it.
        with closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True, timeout=5)) as connection:
            _check_identity(connection, path)
    except (OSError, sqlite3.Error) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB:
            raise ConfigurationError(
                f"{path!r} is not a database; it is left alone, give another path"
            ) from None
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise ConfigurationError(f"{path!r} is locked by another program; try again later") from None
        raise ConfigurationError(
            f"{path!r} cannot be read as a database: {error_words(error)}; name another path"
        ) from None


def prepare(connection: sqlite3.Connection, path: str) -> None:
    """Make the tables in a new database, migrate those of an older version, leave present ones alone."""
    _check_identity(connection, path)
    version = _pragma(connection, "user_version")
    if version == SCHEMA:
        return
    # Before the first table, or SQLite ignores it until the next full vacuum.
    if version == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):
        version = _pragma(connection, "user_version")  # another process may have been first
        if version != SCHEMA:
            _migrate(connection, path, version)
    if version == 1:
        with contextlib.suppress(sqlite3.OperationalError):  # somebody reads: the space is free all the same
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")
        # Files of schema 1 were made with the permissions of the process.
        if path != MEMORY:
            os.chmod(path, 0o600)


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
        if 0 < _pragma(connection, "user_version") < SCHEMA:
            _bring_up_to_date(str(file))
        connection.execute("SELECT 1 FROM scores, evaluations LIMIT 0")
    except sqlite3.Error as error:
        connection.close()
        raise ConfigurationError(
            f"{os.fspath(path)!r} is not a results file: {error_words(error)}; name one that SQLiteSink wrote"
        ) from error
    return connection


def _bring_up_to_date(path: str) -> None:
    try:
        with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as connection:
            prepare(connection, path)
    except sqlite3.Error as error:
        raise ConfigurationError(
            f"{path!r} is of an earlier version and cannot be brought up to date: {error_words(error)}; "
            "copy it to where it can be written"
        ) from None


def _migrate(connection: sqlite3.Connection, path: str, version: int) -> None:
    """Make the tables of a new file, or bring older ones up to date; in the caller's transaction."""
    # What earlier versions made out of their results, and other indexes than today's, go.
    for kind, name in connection.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
    ).fetchall():
        connection.execute(f'DROP {kind} "{name}"')
    for table in _DERIVED if version else ():
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    if version == 1:
        for table in ("evaluations", "scores"):
            connection.execute(f"ALTER TABLE {table} RENAME TO {table}_1")
    if version <= 1:
        _make(connection)
    else:
        count, dated = copy_results(
            connection.execute, columns=partial(_columns, connection), make=partial(_make, connection)
        )
        everyone = connection.execute("SELECT record_id FROM evaluations").fetchall()
        connection.executemany(_FIND_BY, ({"id": record_id} for (record_id,) in everyone))
        _log.info(
            "%s: migrated %d turns to schema %d; %d do not say when they happened and count on the day they "
            "were judged",
            *(path, count, SCHEMA, count - dated),
        )
    if version == 1:
        _read_schema_1(connection, path)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _make(connection: sqlite3.Connection) -> None:
    for statement in (*schema(**_TYPES, compact=" WITHOUT ROWID"), *_KEYS):
        connection.execute(statement)


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]


def _read_schema_1(connection: sqlite3.Connection, path: str) -> None:
    """From rows that hold themselves as JSON, one Evaluation at a time."""
    # Without it each Evaluation's scores would be looked for in all of them.
    connection.execute("CREATE INDEX scores_1_by_record ON scores_1 (record_id, position)")
    count = bad = 0
    for record_id, data in connection.execute("SELECT record_id, json FROM evaluations_1"):
        scores = connection.execute(
            "SELECT json FROM scores_1 WHERE record_id = ? ORDER BY position, id", (record_id,)
        )
        try:
            write_evaluation(connection, _first_evaluation(data, [score for (score,) in scores]))
            count += 1
        except InvalidRecord:
            bad += 1
    for table in ("evaluations_1", "scores_1"):
        connection.execute(f"DROP TABLE {table}")
    _log.log(
        logging.WARNING if bad else logging.INFO,
        "%s: migrated %d evaluations to schema %d; %d could not be read",
        *(path, count, SCHEMA, bad),
    )


def _first_evaluation(data: str, scores: list[str]) -> Evaluation:
    try:
        return evaluation_from_dict({**json.loads(data), "scores": [json.loads(score) for score in scores]})
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRecord(f"a row is not an evaluation: {type(error).__name__}") from None


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _check_identity(connection: sqlite3.Connection, path: str) -> None:
    # The identity comes last: it is written together with the tables, maybe by another process, just now.
    empty = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    first = all(names <= set(_columns(connection, table)) for table, names in _FIRST_COLUMNS.items())
    version, identity = _pragma(connection, "user_version"), _pragma(connection, "application_id")
    if identity == APPLICATION_ID:
        _check_version(version, path)
        return
    if identity == 0 and (version == 0 and empty or version == 1 and first):
        return
    raise ConfigurationError(
        f"{path!r} is a database of another program; it is left alone, give SQLiteSink another path"
    )


def _check_version(version: int, path: str) -> None:
    if version > SCHEMA:
        raise ConfigurationError(
            f"{path!r} has schema {version}, newer than {SCHEMA}; update steelyard or give another path"
        )
