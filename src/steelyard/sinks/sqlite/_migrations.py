"""The tables of a new results file, and those of an older version brought up to date."""

from __future__ import annotations

import json
import logging
import sqlite3
from typing import Final

from steelyard._internal.logs import SafeLogger
from steelyard.errors import InvalidRecord
from steelyard.scores import Evaluation, evaluation_from_dict
from steelyard.sinks.sqlite._keys import create_keys
from steelyard.sinks.sqlite._rows import told_in, write_evaluation
from steelyard.sinks.sqlite._schema import (
    APPLICATION_ID,
    BY_DIAGNOSIS,
    BY_METRIC,
    BY_TIME,
    JUDGE_CHECKS,
    RESULT_TABLES,
    SCREENED,
    SQLITE_SCHEMA,
    TABLES,
    WITHOUT_VALUE,
)

_log = SafeLogger("steelyard.sinks")


# What earlier versions made out of the results, and filled by triggers.
_DERIVED: Final = (
    *("hour_sums", "hour_bars", "hour_missing", "stale_hours", "tags", "turn_keys", "turn_keys_since"),
    *("score_sums", "score_bars", "tag_sums", "tag_bars", "tag_missing"),
)


def migrate(connection: sqlite3.Connection, path: str, version: int) -> None:
    """Make the tables of a new file, or bring those of an older one up to date; in the caller's transaction.

    Args:
        connection: Of the file.
        path: Its path, for the log.
        version: Of its tables; 0 of a new file.
    """
    _drop_derived(connection)
    connection.execute(JUDGE_CHECKS)
    if version == 0:
        _create(connection)
    elif version == 1:
        _from_schema_1(connection, path)
    elif version == 2:
        _from_schema_2(connection, path)
    else:
        _from_later_schemas(connection, path, version)
    create_keys(connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SQLITE_SCHEMA}")


def _create(connection: sqlite3.Connection) -> None:
    for statement in (*TABLES, *RESULT_TABLES):
        connection.execute(statement)


def _drop_derived(connection: sqlite3.Connection) -> None:
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    for table in _DERIVED:
        connection.execute(f"DROP TABLE IF EXISTS {table}")


def _from_later_schemas(connection: sqlite3.Connection, path: str, version: int) -> None:
    """Say of every turn how its passages are known, make room for causes and for what screens say."""
    if version <= 3:
        connection.execute("ALTER TABLE evaluations ADD COLUMN evidence TEXT")
        connection.execute("DROP INDEX evaluations_by_time")
        _read_told(connection, "evaluations")
        count = connection.execute(
            "UPDATE evaluations SET evidence = t.evidence FROM told t WHERE t.turn = evaluations.turn"
        ).rowcount
        connection.execute("DROP TABLE told")
        connection.execute(BY_TIME)
        _log.info("%s: %d turns now say how their passages are known", path, count)
    if version <= 4:
        connection.execute("ALTER TABLE evaluations ADD COLUMN diagnosis TEXT")
        connection.execute(BY_DIAGNOSIS)
    for statement in SCREENED if version <= 5 else ():
        connection.execute(statement)
    indexes = (("by_metric_and_time", BY_METRIC), ("without_value", WITHOUT_VALUE))
    for name, statement in indexes if version <= 6 else ():
        connection.execute(f"DROP INDEX scores_{name}")
        connection.execute(statement)


def _read_told(connection: sqlite3.Connection, table: str) -> None:
    """What the bodies of old turns say, into a table of its own."""
    connection.execute("CREATE TEMP TABLE told (turn INTEGER PRIMARY KEY, at REAL, evidence TEXT)")
    bodies = connection.execute(f"SELECT e.rowid, b.body FROM {table} e JOIN bodies b ON b.id = e.body")
    connection.executemany(
        "INSERT INTO told VALUES (?, ?, ?)", ((turn, *told_in(body)) for turn, body in bodies)
    )


def _from_schema_2(connection: sqlite3.Connection, path: str) -> None:
    """Give every turn its time and its evidence, as far as its body says; in the caller's transaction.

    What does not say it stays at the time when it was judged. Sessions, users and tenants of old turns are
    not known, and stay empty.
    """
    _set_aside(connection, "_2")
    for statement in RESULT_TABLES:
        connection.execute(statement)
    _read_told(connection, "evaluations_2")
    columns = _common(connection, "evaluations")
    count = connection.execute(
        f"""INSERT INTO evaluations (turn, happened_at, evidence, {columns})
            SELECT e.rowid, coalesce(t.at, e.evaluated_at), t.evidence, {columns}
            FROM evaluations_2 e LEFT JOIN told t ON t.turn = e.rowid ORDER BY 2"""
    ).rowcount
    columns = _common(connection, "scores")
    named = ", ".join(f"s.{name}" for name in columns.split(", "))
    connection.execute(
        f"""INSERT INTO scores (turn, happened_at, {columns}) SELECT e.turn, e.happened_at, {named}
            FROM scores_2 s JOIN evaluations e ON e.record_id = s.record_id ORDER BY s.rowid"""
    )
    (told,) = connection.execute("SELECT count(at) FROM told").fetchone()
    for statement in ("DROP TABLE told", "DROP TABLE evaluations_2", "DROP TABLE scores_2"):
        connection.execute(statement)
    _log.info(
        "%s: migrated %d turns to schema %d; %d do not say when they happened and count on the day they were "
        "judged",
        *(path, count, SQLITE_SCHEMA, count - told),
    )


def _from_schema_1(connection: sqlite3.Connection, path: str) -> None:
    """From rows that hold themselves as JSON, one Evaluation at a time; in the caller's transaction."""
    _set_aside(connection, "_1")
    # Without it each Evaluation's scores would be looked for in all of them.
    connection.execute("CREATE INDEX scores_1_by_record ON scores_1 (record_id, position)")
    _create(connection)
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
        *(path, count, SQLITE_SCHEMA, bad),
    )


def _set_aside(connection: sqlite3.Connection, suffix: str) -> None:
    """Rename the tables of results; their indexes go, as the new tables need the names."""
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
        "AND tbl_name IN ('evaluations', 'scores')"
    ).fetchall():
        connection.execute(f'DROP INDEX "{name}"')
    for table in ("evaluations", "scores"):
        connection.execute(f"ALTER TABLE {table} RENAME TO {table}{suffix}")


def _common(connection: sqlite3.Connection, table: str) -> str:
    """The columns that an old table and the new one both have."""
    found = connection.execute("SELECT name FROM pragma_table_info(?)", (f"{table}_2",))
    return ", ".join(name for (name,) in found)


def _first_evaluation(data: str, scores: list[str]) -> Evaluation:
    try:
        return evaluation_from_dict({**json.loads(data), "scores": [json.loads(score) for score in scores]})
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRecord(f"a row is not an evaluation: {type(error).__name__}") from None
