"""Sums over the scores of each hour, kept in the results file by triggers, for pages over many results.

A new score is added where it is written, in the same transaction. A score that is changed or deleted makes
its hour stale, as sums cannot be taken back exactly; a stale hour is read score by score until `refresh_sums`
adds it up again. So what is added up is always what a look at every score would give.
"""

from __future__ import annotations

import sqlite3
from typing import Final

__all__ = ["BARS", "SUM_COLUMNS", "has_sums", "metrics_of", "prepare_sums", "refresh_sums"]

_TABLES: Final = ("score_sums", "score_bars", "stale_hours")
BARS: Final = 20
"""Bars of a distribution over 0..1."""
_HOUR: Final = "CAST(max({s}evaluated_at, 0) / 3600 AS INTEGER)"
_ADDED: Final = {
    "n": "1",
    "ends": "({s}value <= 0 OR {s}value >= 1)",
    "weight": "1 / {p}",
    "value": "{s}value / {p}",
    "square": "1 / ({p} * {p})",
    "square_value": "{s}value / ({p} * {p})",
    "square_value_value": "{s}value * {s}value / ({p} * {p})",
    "fourth": "1 / ({p} * {p} * {p} * {p})",
    "passes_n": "({s}passed IS NOT NULL)",
    "passes_weight": "({s}passed IS NOT NULL) / {p}",
    "passes_value": "coalesce({s}passed, 0) / {p}",
    "passes_square": "({s}passed IS NOT NULL) / ({p} * {p})",
    "passes_square_value": "coalesce({s}passed, 0) / ({p} * {p})",
    "passes_fourth": "({s}passed IS NOT NULL) / ({p} * {p} * {p} * {p})",
}
_LEAST: Final = {
    "least": "{p}",
    "passes_least": "CASE WHEN {s}passed IS NULL THEN 1.0 ELSE {p} END",
}
SUM_COLUMNS: Final = (*_ADDED, *_LEAST)
"""What is kept for each metric and hour, beside its bars, `threshold` and `direction`."""
_BAR: Final = f"CAST(max(min({{s}}value * {BARS}, {BARS - 1}), 0) AS INTEGER)"
_SCORED: Final = "{s}status = 'scored' AND {s}value IS NOT NULL"
_CHANGED: Final = " OR ".join(
    f"old.{name} IS NOT new.{name}"
    for name in (
        *("metric", "evaluated_at", "status", "value", "passed"),
        *("inclusion_probability", "threshold", "direction"),
    )
)


def _of(expression: str, source: str) -> str:
    """An expression over a row: `new.` in a trigger, nothing in a query."""
    return expression.format(s=source, p=f"{source}inclusion_probability")


def _statements() -> tuple[str, ...]:
    columns = ", ".join(f"{name} REAL NOT NULL" for name in SUM_COLUMNS)
    new = [_of(expression, "new.") for expression in (*_ADDED.values(), *_LEAST.values())]
    added = ", ".join(f"{name} = {name} + excluded.{name}" for name in _ADDED)
    least = ", ".join(f"{name} = min({name}, excluded.{name})" for name in _LEAST)
    hour, old_hour = _of(_HOUR, "new."), _of(_HOUR, "old.")
    # Not OR IGNORE: in a trigger the policy of the statement that set it off would count instead.
    stale = "INSERT INTO stale_hours VALUES ({0}) ON CONFLICT DO NOTHING"
    return (
        f"""CREATE TABLE score_sums (metric TEXT NOT NULL, hour INTEGER NOT NULL, threshold REAL,
            direction TEXT NOT NULL, {columns}, PRIMARY KEY (metric, hour)) WITHOUT ROWID""",
        """CREATE TABLE score_bars (metric TEXT NOT NULL, hour INTEGER NOT NULL, bar INTEGER NOT NULL,
            weight REAL NOT NULL, PRIMARY KEY (metric, hour, bar)) WITHOUT ROWID""",
        "CREATE TABLE stale_hours (hour INTEGER PRIMARY KEY)",
        f"""CREATE TRIGGER scores_are_added AFTER INSERT ON scores WHEN {_of(_SCORED, "new.")} BEGIN
            INSERT INTO score_sums (metric, hour, threshold, direction, {", ".join(SUM_COLUMNS)})
            VALUES (new.metric, {hour}, new.threshold, new.direction, {", ".join(new)})
            ON CONFLICT (metric, hour) DO UPDATE
            SET threshold = excluded.threshold, direction = excluded.direction, {added}, {least};
            INSERT INTO score_bars
            VALUES (new.metric, {hour}, {_of(_BAR, "new.")}, 1 / new.inclusion_probability)
            ON CONFLICT (metric, hour, bar) DO UPDATE SET weight = weight + excluded.weight;
            END""",
        f"""CREATE TRIGGER scores_are_changed AFTER UPDATE ON scores WHEN {_CHANGED} BEGIN
            {stale.format(hour)}; {stale.format(old_hour)}; END""",
        f"""CREATE TRIGGER scores_are_deleted AFTER DELETE ON scores WHEN {_of(_SCORED, "old.")} BEGIN
            {stale.format(old_hour)}; END""",
        # What was there before is stale: a file may have been written for years before it had sums.
        f"INSERT OR IGNORE INTO stale_hours SELECT DISTINCT {_of(_HOUR, '')} FROM scores",
    )


def has_sums(connection: sqlite3.Connection) -> bool:
    """Whether a results file has sums, as one has that this version wrote to."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'score_sums'").fetchone()
    return found is not None


def prepare_sums(connection: sqlite3.Connection) -> None:
    """Make the tables and triggers where they are missing.

    Raises:
        sqlite3.Error: If the file cannot be written.
    """
    if has_sums(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not has_sums(connection):  # another process may have been first
            for statement in _statements():
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def refresh_sums(connection: sqlite3.Connection) -> bool:
    """Add up the latest stale hour again, in one transaction; returns whether there was one.

    Raises:
        sqlite3.Error: If the file cannot be written.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        (hour,) = connection.execute("SELECT max(hour) FROM stale_hours").fetchone()
        if hour is not None:
            _refresh(connection, int(hour))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return hour is not None


def _refresh(connection: sqlite3.Connection, hour: int) -> None:
    for table in _TABLES:
        connection.execute(f"DELETE FROM {table} WHERE hour = ?", (hour,))
    start = hour * 3600.0 if hour else -1e300
    added = ", ".join(f"sum({_of(expression, '')})" for expression in _ADDED.values())
    least = ", ".join(f"min({_of(expression, '')})" for expression in _LEAST.values())
    where = f"metric = :metric AND evaluated_at >= :start AND evaluated_at < :stop AND {_of(_SCORED, '')}"
    last = f"(SELECT {{}} FROM scores WHERE {where} ORDER BY rowid DESC LIMIT 1)"
    for metric in metrics_of(connection):
        values = {"metric": metric, "start": start, "stop": (hour + 1) * 3600.0}
        connection.execute(
            f"""INSERT INTO score_sums (metric, hour, threshold, direction, {", ".join(SUM_COLUMNS)})
                SELECT metric, {hour}, {last.format("threshold")}, {last.format("direction")}, {added},
                {least}
                FROM scores WHERE {where} GROUP BY metric""",
            values,
        )
        connection.execute(
            f"""INSERT INTO score_bars SELECT metric, {hour}, {_of(_BAR, "")}, sum(1 / inclusion_probability)
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
