"""Sums over the scores of each hour, by tag, for tags that many turns have.

The turns of a rare tag are few, so their scores are read one by one, and nothing is kept for them. A tag that
1,000 turns have gets sums when the file is next served: from then on new scores are added as they are
written, and the earlier hours are added up piece by piece, the latest first. `tags.since_hour` says how far
that has got: the sums of this hour and later ones count, unless the hour is stale.
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
from steelyard.sinks.sqlite.sums._hours import STALE, metrics_of
from steelyard.sinks.sqlite.sums._keys import TAGS

FREQUENT: Final = 1_000
"""Turns from which on a tag has sums."""
_MOST: Final = 200
"""Tags with sums, at most; a score is added to those that its own turn has."""
_HOURS: Final = 6
"""Hours added up in one transaction."""
_FAR: Final = 2**40
"""An hour that will not come: nothing is added up yet."""
_TABLES: Final = ("tag_sums", "tag_bars", "tag_missing")
_OF_NEW: Final = f"""FROM evaluations e CROSS JOIN {TAGS.format(e="e")} k CROSS JOIN tags t
    WHERE e.record_id = new.record_id AND k.type = 'text'
    AND t.tag = k.value AND t.since_hour <= {of(HOUR, "new.")}"""
"""The tags of a new score that have sums of its hour."""
_ANY: Final = "EXISTS (SELECT 1 FROM tags WHERE since_hour IS NOT NULL)"


def create(connection: sqlite3.Connection) -> None:
    """Make the tables and triggers; before the first turn key is written."""
    hour = of(HOUR, "new.")
    of_turn = f"SELECT DISTINCT {of(HOUR, '')} FROM scores WHERE record_id = new.record_id"
    cleared = "; ".join(f"DELETE FROM {table} WHERE tag = old.tag" for table in _TABLES)
    for statement in (
        """CREATE TABLE tags (tag TEXT NOT NULL PRIMARY KEY, turns INTEGER NOT NULL, since_hour INTEGER)
            WITHOUT ROWID""",
        "CREATE INDEX tags_with_sums ON tags (since_hour) WHERE since_hour IS NOT NULL",
        f"CREATE INDEX tags_without_sums ON tags (turns) WHERE since_hour IS NULL AND turns >= {FREQUENT}",
        f"""CREATE TABLE tag_sums (tag TEXT NOT NULL, metric TEXT NOT NULL, hour INTEGER NOT NULL,
            threshold REAL, direction TEXT NOT NULL, {DEFINED}, PRIMARY KEY (tag, metric, hour))
            WITHOUT ROWID""",
        """CREATE TABLE tag_bars (tag TEXT NOT NULL, metric TEXT NOT NULL, hour INTEGER NOT NULL,
            bar INTEGER NOT NULL, weight REAL NOT NULL, PRIMARY KEY (tag, metric, hour, bar))
            WITHOUT ROWID""",
        """CREATE TABLE tag_missing (tag TEXT NOT NULL, metric TEXT NOT NULL, hour INTEGER NOT NULL,
            status TEXT NOT NULL, cause TEXT NOT NULL, n INTEGER NOT NULL,
            PRIMARY KEY (tag, metric, hour, status, cause)) WITHOUT ROWID""",
        """CREATE TRIGGER tags_are_added AFTER INSERT ON turn_keys WHEN new.kind = 'tag' BEGIN
            INSERT INTO tags (tag, turns) VALUES (new.value, 1)
            ON CONFLICT (tag) DO UPDATE SET turns = turns + 1; END""",
        """CREATE TRIGGER tags_are_deleted AFTER DELETE ON turn_keys WHEN old.kind = 'tag' BEGIN
            UPDATE tags SET turns = turns - 1 WHERE tag = old.value;
            DELETE FROM tags WHERE tag = old.value AND turns <= 0; END""",
        f"CREATE TRIGGER tags_are_forgotten AFTER DELETE ON tags BEGIN {cleared}; END",
        f"""CREATE TRIGGER missing_are_added_by_tag AFTER INSERT ON scores
            WHEN new.status != 'scored' AND {_ANY} BEGIN
            INSERT INTO tag_missing
            SELECT t.tag, new.metric, {hour}, new.status, coalesce(new.cause, 'unknown'), 1 {_OF_NEW}
            ON CONFLICT (tag, metric, hour, status, cause) DO UPDATE SET n = n + 1; END""",
        # A score finds its tags if its turn is there before it; where it was not, the hour is added up again.
        f"""CREATE TRIGGER turns_after_scores AFTER INSERT ON evaluations WHEN {_ANY} BEGIN
            {STALE.format(of_turn)}; END""",
        f"""CREATE TRIGGER tags_are_changed AFTER UPDATE ON evaluations
            WHEN old.tags IS NOT new.tags AND {_ANY} BEGIN {STALE.format(of_turn)}; END""",
    ):
        connection.execute(statement)
    make_trigger(connection)


def make_trigger(connection: sqlite3.Connection) -> None:
    """Make what adds a new score to the sums of its tags, in place of an earlier version's."""
    hour = of(HOUR, "new.")
    connection.execute("DROP TRIGGER IF EXISTS scores_are_added_by_tag")
    connection.execute(
        f"""CREATE TRIGGER scores_are_added_by_tag AFTER INSERT ON scores
            WHEN {of(SCORED, "new.")} AND {_ANY} BEGIN
            INSERT INTO tag_sums (tag, metric, hour, threshold, direction, {", ".join(SUM_COLUMNS)})
            SELECT t.tag, new.metric, {hour}, new.threshold, new.direction, {of_one("new.")} {_OF_NEW}
            ON CONFLICT (tag, metric, hour) DO UPDATE
            SET threshold = excluded.threshold, direction = excluded.direction, {UPDATED};
            INSERT INTO tag_bars
            SELECT t.tag, new.metric, {hour}, {of(BAR, "new.")}, 1 / new.inclusion_probability {_OF_NEW}
            ON CONFLICT (tag, metric, hour, bar) DO UPDATE SET weight = weight + excluded.weight; END"""
    )


def has_tags(connection: sqlite3.Connection) -> bool:
    """Whether the tables are there."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'tags'").fetchone() is not None


def summed_since(connection: sqlite3.Connection, tag: str) -> int | None:
    """The first hour of which sums count for a tag; None where there are none for it."""
    if not has_tags(connection):
        return None
    row = connection.execute("SELECT since_hour FROM tags WHERE tag = ?", (tag,)).fetchone()
    return row[0] if row else None


def add_older(connection: sqlite3.Connection) -> bool:
    """Give sums to tags that have become frequent, or add up earlier hours for those that have begun."""
    (reached,) = connection.execute("SELECT max(since_hour) FROM tags WHERE since_hour > 0").fetchone()
    if reached is None:
        begun = connection.execute(
            f"""UPDATE tags SET since_hour = {_FAR} WHERE tag IN (
                SELECT tag FROM tags WHERE since_hour IS NULL AND turns >= {FREQUENT} ORDER BY turns DESC
                LIMIT max({_MOST} - (SELECT count(*) FROM tags WHERE since_hour IS NOT NULL), 0))"""
        )
        return begun.rowcount > 0
    last = max((_last_hour(connection, metric, reached) for metric in metrics_of(connection)), default=-1)
    first = max(last - _HOURS + 1, 0)
    if last >= 0:
        _add_up(connection, first, last + 1, f"t.since_hour = {int(reached)}")
    connection.execute("UPDATE tags SET since_hour = ? WHERE since_hour = ?", (first, reached))
    return True


def add_up_again(connection: sqlite3.Connection, hour: int) -> None:
    """Add up an hour anew for every tag that has sums of it."""
    if not has_tags(connection):
        return
    summed = "SELECT tag FROM tags WHERE since_hour IS NOT NULL"
    for table in _TABLES:
        connection.executemany(
            f"DELETE FROM {table} WHERE tag IN ({summed}) AND metric = ? AND hour = ?",
            [(metric, hour) for metric in metrics_of(connection)],
        )
    _add_up(connection, hour, hour + 1, f"t.since_hour <= {hour}")


def _last_hour(connection: sqlite3.Connection, metric: str, before: int) -> int:
    """The last hour before one in which a metric has a score, or -1."""
    (at,) = connection.execute(
        "SELECT max(happened_at) FROM scores WHERE metric = ? AND happened_at < ?",
        (metric, before * 3600.0),
    ).fetchone()
    return -1 if at is None else int(max(at, 0.0) // 3600)


def _add_up(connection: sqlite3.Connection, first: int, stop: int, which: str) -> None:
    """Add up the hours from `first` to before `stop` for some tags, of which nothing is kept yet."""
    of_metric = f"""FROM scores s CROSS JOIN evaluations e CROSS JOIN {TAGS.format(e="e")} k CROSS JOIN tags t
        WHERE s.metric = :metric AND s.happened_at >= :start AND s.happened_at < :stop
        AND e.record_id = s.record_id AND k.type = 'text' AND t.tag = k.value AND {which}"""
    hour, scored = of(HOUR, "s."), of(SCORED, "s.")
    # The threshold of an hour is that of its last score.
    rows = f"""SELECT t.tag, {hour} AS hour, s.metric, s.value, s.passed, s.inclusion_probability,
        s.threshold, s.direction, s.rowid = max(s.rowid) OVER (PARTITION BY t.tag, {hour}) AS is_last
        {of_metric} AND {scored}"""
    for metric in metrics_of(connection):
        values = {"metric": metric, **bounds(first, stop)}
        connection.execute(
            f"""INSERT INTO tag_sums (tag, metric, hour, threshold, direction, {", ".join(SUM_COLUMNS)})
                SELECT tag, metric, hour, max(CASE WHEN is_last THEN threshold END),
                max(CASE WHEN is_last THEN direction END), {of_many()} FROM ({rows}) GROUP BY tag, hour""",
            values,
        )
        connection.execute(
            f"""INSERT INTO tag_bars SELECT t.tag, s.metric, {hour}, {of(BAR, "s.")},
                sum(1 / s.inclusion_probability) {of_metric} AND {scored} GROUP BY 1, 3, 4""",
            values,
        )
        connection.execute(
            f"""INSERT INTO tag_missing SELECT t.tag, s.metric, {hour}, s.status,
                coalesce(s.cause, 'unknown'), count(*) {of_metric} AND s.status != 'scored'
                GROUP BY 1, 3, 4, 5""",
            values,
        )
