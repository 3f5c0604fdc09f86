"""Sums over the scores of each hour.

A new score is added where it is written, in the same transaction. A score that is changed or deleted makes
its hour stale, as sums cannot be taken back exactly; a stale hour is read score by score until it is added up
again. So what is added up is always what a look at every score would give.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from steelyard.sinks.sqlite.sums._columns import (
    BAR,
    DEFINED,
    HOUR,
    SCORED,
    SUM_COLUMNS,
    UPDATED,
    bounds,
    of,
    of_many,
    of_one,
)

STALE: Final = "INSERT INTO stale_hours {0} ON CONFLICT DO NOTHING"
"""Not OR IGNORE: in a trigger the policy of the statement that set it off would count instead."""
_CHANGED: Final = " OR ".join(
    f"old.{name} IS NOT new.{name}"
    for name in (
        *("metric", "happened_at", "status", "value", "passed"),
        *("inclusion_probability", "threshold", "direction", "cause"),
    )
)


def create(connection: sqlite3.Connection) -> None:
    """Make the tables; what is there already is stale, perhaps the results of years."""
    for statement in (
        f"""CREATE TABLE score_sums (metric TEXT NOT NULL, hour INTEGER NOT NULL, threshold REAL,
            direction TEXT NOT NULL, {DEFINED}, PRIMARY KEY (metric, hour)) WITHOUT ROWID""",
        """CREATE TABLE score_bars (metric TEXT NOT NULL, hour INTEGER NOT NULL, bar INTEGER NOT NULL,
            weight REAL NOT NULL, PRIMARY KEY (metric, hour, bar)) WITHOUT ROWID""",
        "CREATE TABLE stale_hours (hour INTEGER PRIMARY KEY)",
    ):
        connection.execute(statement)
    make_all_stale(connection)


def make_all_stale(connection: sqlite3.Connection) -> None:
    """Have every hour added up again."""
    connection.execute(f"INSERT OR IGNORE INTO stale_hours SELECT DISTINCT {of(HOUR, '')} FROM scores")


def make_triggers(connection: sqlite3.Connection) -> None:
    """Make the triggers, in place of those of an earlier version."""
    hour, old_hour = of(HOUR, "new."), of(HOUR, "old.")
    for name in ("added", "changed", "deleted"):
        connection.execute(f"DROP TRIGGER IF EXISTS scores_are_{name}")
    for statement in (
        f"""CREATE TRIGGER scores_are_added AFTER INSERT ON scores WHEN {of(SCORED, "new.")} BEGIN
            INSERT INTO score_sums (metric, hour, threshold, direction, {", ".join(SUM_COLUMNS)})
            VALUES (new.metric, {hour}, new.threshold, new.direction, {of_one("new.")})
            ON CONFLICT (metric, hour) DO UPDATE
            SET threshold = excluded.threshold, direction = excluded.direction, {UPDATED};
            INSERT INTO score_bars
            VALUES (new.metric, {hour}, {of(BAR, "new.")}, 1 / new.inclusion_probability)
            ON CONFLICT (metric, hour, bar) DO UPDATE SET weight = weight + excluded.weight;
            END""",
        f"""CREATE TRIGGER scores_are_changed AFTER UPDATE ON scores WHEN {_CHANGED} BEGIN
            {STALE.format(f"VALUES ({hour})")}; {STALE.format(f"VALUES ({old_hour})")}; END""",
        f"""CREATE TRIGGER scores_are_deleted AFTER DELETE ON scores BEGIN
            {STALE.format(f"VALUES ({old_hour})")}; END""",
    ):
        connection.execute(statement)


def has_sums(connection: sqlite3.Connection) -> bool:
    """Whether a results file has all sums, as one has that this version wrote to."""
    return not columns_missing(connection, "score_sums")


def columns_missing(connection: sqlite3.Connection, table: str) -> list[str]:
    """Which sums a table does not have; all of them where it is not there."""
    found = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    return [name for name in SUM_COLUMNS if name not in found]


def add_up(connection: sqlite3.Connection, hour: int) -> None:
    """Add up an hour anew."""
    where = f"metric = :metric AND happened_at >= :start AND happened_at < :stop AND {of(SCORED, '')}"
    last = f"(SELECT {{}} FROM scores WHERE {where} ORDER BY rowid DESC LIMIT 1)"
    for table in ("score_sums", "score_bars"):
        connection.execute(f"DELETE FROM {table} WHERE hour = ?", (hour,))
    for metric in metrics_of(connection):
        values = {"metric": metric, **bounds(hour, hour + 1)}
        connection.execute(
            f"""INSERT INTO score_sums (metric, hour, threshold, direction, {", ".join(SUM_COLUMNS)})
                SELECT metric, {hour}, {last.format("threshold")}, {last.format("direction")}, {of_many()}
                FROM scores WHERE {where} GROUP BY metric""",
            values,
        )
        connection.execute(
            f"""INSERT INTO score_bars SELECT metric, {hour}, {of(BAR, "")}, sum(1 / inclusion_probability)
                FROM scores WHERE {where} GROUP BY 3""",
            values,
        )


def metrics_of(connection: sqlite3.Connection) -> list[str]:
    """The names of all metrics, by a jump through the index from each to the next."""
    rows = connection.execute(
        """WITH RECURSIVE names (name) AS (SELECT min(metric) FROM scores UNION ALL
            SELECT (SELECT min(metric) FROM scores WHERE metric > name) FROM names WHERE name IS NOT NULL)
            SELECT name FROM names WHERE name IS NOT NULL"""
    )
    return [name for (name,) in rows]
