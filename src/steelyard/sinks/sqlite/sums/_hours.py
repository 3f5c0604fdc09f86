"""Sums over the scores of each hour, of all turns and of each tag that many turns have.

A new score is added where it is written, in the same transaction. A score that is changed or deleted makes
its hour stale, as sums cannot be taken back exactly; a stale hour is read score by score until it is added up
again. So what is added up is always what a look at every score would give.

The turns of a rare tag are few, so their scores are read one by one, and nothing is kept for them. A tag that
1,000 turns have gets sums when the file is next served: from then on new scores are added as they are
written, and the earlier hours are added up piece by piece, the latest first; so are those of all turns in a
file that an earlier version wrote. `tags.since_hour` says how far that has got: the sums of this hour and
later ones count, unless the hour is stale.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from steelyard.sinks.sqlite.sums._keys import TAGS

ALL: Final = b""
"""The tag that stands for all turns: bytes, since the tags of turns are texts."""
BARS: Final = 20
"""Bars of a distribution over 0..1."""
FREQUENT: Final = 1_000
"""Turns from which on a tag has sums."""
_ADDED: Final = {
    "n": "1",
    "ends": "({s}value <= 0 OR {s}value >= 1)",
    "weight": "1 / {p}",
    "value": "{s}value / {p}",
    "value_value": "{s}value * {s}value / {p}",
    "value_value_value": "{s}value * {s}value * {s}value / {p}",
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
"""What is kept for each tag, metric and hour, beside its bars, `threshold` and `direction`."""
_MOST: Final = 200
"""Tags with sums, at most; a score is added to those that its own turn has."""
_HOURS: Final = 6
"""Hours added up in one transaction."""
_FAR: Final = 2**40
"""An hour that will not come: nothing is added up yet."""
_TABLES: Final = ("hour_sums", "hour_bars", "hour_missing")
_NAMES: Final = ", ".join(("tag", "metric", "hour", "threshold", "direction", *SUM_COLUMNS))
_STALE: Final = "INSERT INTO stale_hours {0} ON CONFLICT DO NOTHING"
"""Not OR IGNORE: in a trigger the policy of the statement that set it off would count instead."""
_CHANGED: Final = " OR ".join(
    f"old.{name} IS NOT new.{name}"
    for name in (
        *("metric", "happened_at", "status", "value", "passed"),
        *("inclusion_probability", "threshold", "direction", "cause"),
    )
)


def _of(expression: str, source: str = "") -> str:
    """An expression over a score: `new.` in a trigger, nothing in a query."""
    return expression.format(s=source, p=f"{source}inclusion_probability")


_HOUR: Final = "CAST(max({s}happened_at, 0) / 3600 AS INTEGER)"
_BAR: Final = f"CAST(max(min({{s}}value * {BARS}, {BARS - 1}), 0) AS INTEGER)"
_SCORED: Final = "{s}status = 'scored' AND {s}value IS NOT NULL"
_NEW_HOUR: Final = _of(_HOUR, "new.")
_ANY: Final = "EXISTS (SELECT 1 FROM tags WHERE since_hour IS NOT NULL AND tag <> X'')"
"""Whether a tag has sums; if none has, those of a new score are not looked for."""
_OF_ALL: Final = f"FROM tags t WHERE t.tag = X'' AND t.since_hour <= {_NEW_HOUR}"
"""All turns, if there are sums of a new score's hour."""
_OF_TAGS: Final = f"""FROM evaluations e CROSS JOIN {TAGS.format(e="e")} k CROSS JOIN tags t
    WHERE e.record_id = new.record_id AND k.type = 'text'
    AND t.tag = k.value AND t.since_hour <= {_NEW_HOUR}"""
"""The tags of a new score that have sums of its hour."""


def create(connection: sqlite3.Connection) -> None:
    """Make the tables and triggers; before the first turn key is written."""
    one = ", ".join(_of(expression, "new.") for expression in (*_ADDED.values(), *_LEAST.values()))
    updated = ", ".join(
        [f"{name} = {name} + excluded.{name}" for name in _ADDED]
        + [f"{name} = min({name}, excluded.{name})" for name in _LEAST]
    )
    of_turn = f"SELECT DISTINCT {_of(_HOUR)} FROM scores WHERE record_id = new.record_id"
    cleared = "; ".join(f"DELETE FROM {table} WHERE tag = old.tag" for table in _TABLES)
    key = "tag NOT NULL, metric TEXT NOT NULL, hour INTEGER NOT NULL"
    for statement in (
        "CREATE TABLE stale_hours (hour INTEGER PRIMARY KEY)",
        "CREATE TABLE tags (tag NOT NULL PRIMARY KEY, turns INTEGER NOT NULL, since_hour INTEGER) "
        "WITHOUT ROWID",
        "CREATE INDEX tags_with_sums ON tags (since_hour) WHERE since_hour IS NOT NULL",
        f"CREATE INDEX tags_without_sums ON tags (turns) WHERE since_hour IS NULL AND turns >= {FREQUENT}",
        f"INSERT INTO tags SELECT X'', 0, CASE WHEN EXISTS (SELECT 1 FROM scores) THEN {_FAR} ELSE 0 END",
        f"""CREATE TABLE hour_sums ({key}, threshold REAL, direction TEXT NOT NULL,
            {", ".join(f"{name} REAL NOT NULL" for name in SUM_COLUMNS)}, PRIMARY KEY (tag, metric, hour))
            WITHOUT ROWID""",
        f"""CREATE TABLE hour_bars ({key}, bar INTEGER NOT NULL, weight REAL NOT NULL,
            PRIMARY KEY (tag, metric, hour, bar)) WITHOUT ROWID""",
        f"""CREATE TABLE hour_missing ({key}, status TEXT NOT NULL, cause TEXT NOT NULL, n INTEGER NOT NULL,
            PRIMARY KEY (tag, metric, hour, status, cause)) WITHOUT ROWID""",
        *(
            f"""CREATE TRIGGER {name} AFTER INSERT ON scores WHEN {_of(_SCORED, "new.")} AND {which} BEGIN
            INSERT INTO hour_sums ({_NAMES})
            SELECT t.tag, new.metric, {_NEW_HOUR}, new.threshold, new.direction, {one} {source}
            ON CONFLICT (tag, metric, hour) DO UPDATE
            SET threshold = excluded.threshold, direction = excluded.direction, {updated};
            INSERT INTO hour_bars
            SELECT t.tag, new.metric, {_NEW_HOUR}, {_of(_BAR, "new.")}, 1 / new.inclusion_probability {source}
            ON CONFLICT (tag, metric, hour, bar) DO UPDATE SET weight = weight + excluded.weight; END"""
            for name, which, source in (
                ("scores_are_added", "1", _OF_ALL),
                ("scores_are_added_by_tag", _ANY, _OF_TAGS),
            )
        ),
        f"""CREATE TRIGGER missing_are_added AFTER INSERT ON scores
            WHEN new.status != 'scored' AND {_ANY} BEGIN
            INSERT INTO hour_missing
            SELECT t.tag, new.metric, {_NEW_HOUR}, new.status, coalesce(new.cause, 'unknown'), 1 {_OF_TAGS}
            ON CONFLICT (tag, metric, hour, status, cause) DO UPDATE SET n = n + 1; END""",
        f"""CREATE TRIGGER scores_are_changed AFTER UPDATE ON scores WHEN {_CHANGED} BEGIN
            {_STALE.format(f"VALUES ({_NEW_HOUR})")};
            {_STALE.format(f"VALUES ({_of(_HOUR, 'old.')})")}; END""",
        f"""CREATE TRIGGER scores_are_deleted AFTER DELETE ON scores BEGIN
            {_STALE.format(f"VALUES ({_of(_HOUR, 'old.')})")}; END""",
        # A score finds its tags if its turn is there before it; where it was not, the hour is added up again.
        f"""CREATE TRIGGER turns_after_scores AFTER INSERT ON evaluations WHEN {_ANY} BEGIN
            {_STALE.format(of_turn)}; END""",
        f"""CREATE TRIGGER tags_are_changed AFTER UPDATE ON evaluations
            WHEN old.tags IS NOT new.tags AND {_ANY} BEGIN {_STALE.format(of_turn)}; END""",
        """CREATE TRIGGER tags_are_added AFTER INSERT ON turn_keys WHEN new.kind = 'tag' BEGIN
            INSERT INTO tags (tag, turns) VALUES (new.value, 1)
            ON CONFLICT (tag) DO UPDATE SET turns = turns + 1; END""",
        """CREATE TRIGGER tags_are_deleted AFTER DELETE ON turn_keys WHEN old.kind = 'tag' BEGIN
            UPDATE tags SET turns = turns - 1 WHERE tag = old.value;
            DELETE FROM tags WHERE tag = old.value AND turns <= 0; END""",
        f"CREATE TRIGGER tags_are_forgotten AFTER DELETE ON tags BEGIN {cleared}; END",
    ):
        connection.execute(statement)


def has_sums(connection: sqlite3.Connection) -> bool:
    """Whether a results file keeps all these sums, as one does that this version wrote to."""
    found = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info('hour_sums')")}
    return found >= set(SUM_COLUMNS)


def summed_since(connection: sqlite3.Connection, tag: str | bytes) -> int | None:
    """The first hour of which the sums of a tag count; None where none are kept for it."""
    row = connection.execute("SELECT since_hour FROM tags WHERE tag = ?", (tag,)).fetchone()
    return row[0] if row else None


def add_older(connection: sqlite3.Connection) -> bool:
    """Give sums to tags that have become frequent, or add up earlier hours for those that have begun."""
    (reached,) = connection.execute("SELECT max(since_hour) FROM tags WHERE since_hour > 0").fetchone()
    if reached is None:
        begun = connection.execute(
            f"""UPDATE tags SET since_hour = {_FAR} WHERE tag IN (
                SELECT tag FROM tags WHERE since_hour IS NULL AND turns >= {FREQUENT} ORDER BY turns DESC
                LIMIT max({_MOST + 1} - (SELECT count(*) FROM tags WHERE since_hour IS NOT NULL), 0))"""
        )
        return begun.rowcount > 0
    last = max((_last_hour(connection, metric, reached) for metric in metrics_of(connection)), default=-1)
    first = max(last - _HOURS + 1, 0)
    if last >= 0:
        _add_up(connection, first, last + 1, f"t.since_hour = {int(reached)}")
    connection.execute("UPDATE tags SET since_hour = ? WHERE since_hour = ?", (first, reached))
    return True


def refresh_hour(connection: sqlite3.Connection) -> bool:
    """Add up the latest stale hour anew, for every tag that has sums of it; whether there was one."""
    (hour,) = connection.execute("SELECT max(hour) FROM stale_hours").fetchone()
    if hour is None:
        return False
    summed = "SELECT tag FROM tags WHERE since_hour IS NOT NULL"
    for table in _TABLES:
        # Of all turns also those of metrics that have no score any more.
        connection.execute(f"DELETE FROM {table} WHERE tag = X'' AND hour = ?", (hour,))
        connection.executemany(
            f"DELETE FROM {table} WHERE tag IN ({summed}) AND metric = ? AND hour = ?",
            [(metric, hour) for metric in metrics_of(connection)],
        )
    _add_up(connection, hour, hour + 1, f"t.since_hour <= {int(hour)}")
    connection.execute("DELETE FROM stale_hours WHERE hour = ?", (hour,))
    return True


def _last_hour(connection: sqlite3.Connection, metric: str, before: int) -> int:
    """The last hour before one in which a metric has a score, or -1."""
    (at,) = connection.execute(
        "SELECT max(happened_at) FROM scores WHERE metric = ? AND happened_at < ?",
        (metric, before * 3600.0),
    ).fetchone()
    return -1 if at is None else int(max(at, 0.0) // 3600)


def _add_up(connection: sqlite3.Connection, first: int, stop: int, which: str) -> None:
    """Add up the hours from `first` to before `stop` for some tags, of which nothing is kept yet."""
    within = "s.metric = :metric AND s.happened_at >= :start AND s.happened_at < :stop"
    scores = f"""(SELECT t.tag, s.rowid AS place, s.* FROM scores s CROSS JOIN tags t
        WHERE {within} AND t.tag = X'' AND {which}
        UNION ALL
        SELECT t.tag, s.rowid AS place, s.* FROM scores s CROSS JOIN evaluations e
        CROSS JOIN {TAGS.format(e="e")} k CROSS JOIN tags t
        WHERE {within} AND e.record_id = s.record_id AND k.type = 'text' AND t.tag = k.value AND {which})"""
    hour, scored = _of(_HOUR), _of(_SCORED)
    # The threshold of an hour is that of its last score.
    last = f"place = max(place) OVER (PARTITION BY tag, {hour}) AS is_last"
    added = ", ".join(f"sum({_of(expression)})" for expression in _ADDED.values())
    least = ", ".join(f"min({_of(expression)})" for expression in _LEAST.values())
    # What is before 1970 is in hour 0.
    times = {"start": first * 3600.0 if first else -1e300, "stop": stop * 3600.0}
    for metric in metrics_of(connection):
        for statement in (
            f"""INSERT INTO hour_sums ({_NAMES})
                SELECT tag, metric, {hour}, max(CASE WHEN is_last THEN threshold END),
                max(CASE WHEN is_last THEN direction END), {added}, {least}
                FROM (SELECT *, {last} FROM {scores} WHERE {scored}) GROUP BY 1, 3""",
            f"""INSERT INTO hour_bars SELECT tag, metric, {hour}, {_of(_BAR)}, sum(1 / inclusion_probability)
                FROM {scores} WHERE {scored} GROUP BY 1, 3, 4""",
            f"""INSERT INTO hour_missing SELECT tag, metric, {hour}, status, coalesce(cause, 'unknown'),
                count(*) FROM {scores} WHERE status != 'scored' AND tag <> X'' GROUP BY 1, 3, 4, 5""",
        ):
            connection.execute(statement, {"metric": metric, **times})


def metrics_of(connection: sqlite3.Connection) -> list[str]:
    """The names of all metrics, by a jump through the index from each to the next."""
    rows = connection.execute(
        """WITH RECURSIVE names (name) AS (SELECT min(metric) FROM scores UNION ALL
            SELECT (SELECT min(metric) FROM scores WHERE metric > name) FROM names WHERE name IS NOT NULL)
            SELECT name FROM names WHERE name IS NOT NULL"""
    )
    return [name for (name,) in rows]
