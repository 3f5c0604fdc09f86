"""Which turns have a tag, a version, a route or a judge: an index of what stands in JSON or other rows.

It is kept by triggers, in the transaction that writes a result.
"""

from __future__ import annotations

import sqlite3
from typing import Final

TAGS: Final = "json_each(CASE WHEN json_valid({e}.tags) THEN {e}.tags ELSE '[]' END)"
"""The tags of a row of `evaluations`, as a table."""
_FIELD: Final = (
    "CASE WHEN json_valid({e}.metadata) THEN CAST(json_extract({e}.metadata, '$.{name}') AS TEXT) END"
)
_FIELDS: Final = ("version", "route")
_CHANGED: Final = " OR ".join(
    f"old.{name} IS NOT new.{name}" for name in ("happened_at", "tags", "metadata", "record_id")
)
_INSERT: Final = "INSERT INTO turn_keys {} ON CONFLICT DO NOTHING"


def create_keys(connection: sqlite3.Connection) -> None:
    """Make table and triggers, and index the turns that are there."""
    added = "; ".join(_INSERT.format(select) for select in _selects("new"))
    deleted = "; ".join(_deletes())
    of_score = """SELECT 'judge', new.judge, happened_at, record_id, turn FROM evaluations
        WHERE record_id = new.record_id AND new.judge IS NOT NULL"""
    # The last score of a judge takes its key along; a turn's scores go before the turn.
    not_any_more = """DELETE FROM turn_keys WHERE kind = 'judge' AND value = old.judge
        AND happened_at = (SELECT happened_at FROM evaluations WHERE record_id = old.record_id)
        AND record_id = old.record_id
        AND NOT EXISTS (SELECT 1 FROM scores WHERE record_id = old.record_id AND judge = old.judge)"""
    for statement in (
        """CREATE TABLE turn_keys (kind TEXT NOT NULL, value TEXT NOT NULL, happened_at REAL NOT NULL,
            record_id TEXT NOT NULL, turn INTEGER NOT NULL,
            PRIMARY KEY (kind, value, happened_at, record_id)) WITHOUT ROWID""",
        *map(_INSERT.format, _selects("e", "evaluations e CROSS JOIN ")),
        f"CREATE TRIGGER turns_are_added AFTER INSERT ON evaluations BEGIN {added}; END",
        f"""CREATE TRIGGER turns_are_changed AFTER UPDATE ON evaluations WHEN {_CHANGED} BEGIN
            {deleted}; {added}; END""",
        f"CREATE TRIGGER turns_are_deleted AFTER DELETE ON evaluations BEGIN {deleted}; END",
        f"CREATE TRIGGER judges_are_added AFTER INSERT ON scores BEGIN {_INSERT.format(of_score)}; END",
        f"""CREATE TRIGGER judges_are_changed AFTER UPDATE ON scores WHEN old.judge IS NOT new.judge BEGIN
            {not_any_more}; {_INSERT.format(of_score)}; END""",
        f"CREATE TRIGGER judges_are_deleted AFTER DELETE ON scores BEGIN {not_any_more}; END",
    ):
        connection.execute(statement)


def _selects(e: str, turns: str = "") -> list[str]:
    """The keys of one turn (`new` in a trigger), or of all turns `e`."""
    turn = f"{e}.happened_at, {e}.record_id, {e}.turn"
    fields = ((name, _FIELD.format(e=e, name=name)) for name in _FIELDS)
    return [
        f"SELECT 'tag', value, {turn} FROM {turns}{TAGS.format(e=e)} WHERE type = 'text'",
        *(
            f"SELECT '{name}', {field}, {turn} FROM {turns}(SELECT 1) WHERE {field} IS NOT NULL"
            for name, field in fields
        ),
        f"""SELECT 'judge', s.judge, {turn} FROM {turns}scores s
            WHERE s.record_id = {e}.record_id AND s.judge IS NOT NULL""",
    ]


def _deletes() -> list[str]:
    values = {
        "tag": f"SELECT value FROM {TAGS.format(e='old')}",
        **{name: f"SELECT {_FIELD.format(e='old', name=name)}" for name in _FIELDS},
        "judge": "SELECT judge FROM scores WHERE record_id = old.record_id",
    }
    return [
        f"""DELETE FROM turn_keys WHERE kind = '{kind}' AND value IN ({value})
            AND happened_at = old.happened_at AND record_id = old.record_id"""
        for kind, value in values.items()
    ]
