"""The list of turns out of a results file: filtered, newest first, paged by key."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from typing import Any

from steelyard.report.turns import TurnFilter, TurnRow

_STATUS = {
    "passed": "+s.passed = 1",
    "not_passed": "+s.passed = 0",
    "failed": "s.status = 'failed'",
    "not_applicable": "s.status = 'not_applicable'",
}


def turns_of(
    connection: sqlite3.Connection,
    wanted: TurnFilter,
    *,
    before: tuple[float, str] | None,
    after: tuple[float, str] | None,
    limit: int,
) -> list[TurnRow]:
    """A page of turns, newest first; see `ResultsReader.turns`."""
    where, values = _conditions(wanted)
    if key := before or after:
        where.append(f"(e.evaluated_at, e.record_id) {'<' if before else '>'} (:time, :id)")
        values |= {"time": key[0], "id": key[1]}
    order = "ASC" if after and not before else "DESC"
    query = f"""SELECT e.record_id, e.evaluated_at, substr(e.question, 1, 400) FROM evaluations e
        WHERE {" AND ".join(where) or "1"}
        ORDER BY e.evaluated_at {order}, e.record_id {order} LIMIT :limit"""
    found = connection.execute(query, {**values, "limit": limit}).fetchall()
    scores = _scores(connection, [row[0] for row in found])
    rows = [
        TurnRow(record_id=row[0], evaluated_at=row[1], question=row[2] or "", scores=tuple(scores[row[0]]))
        for row in found
    ]
    return rows[::-1] if order == "ASC" else rows


def _conditions(wanted: TurnFilter) -> tuple[list[str], dict[str, Any]]:
    # The plus keeps SQLite from looking a metric up for every turn: a turn has few scores, a metric many.
    # Failures are few: the index of what has no value finds them, where a look at every turn would take long.
    only_failed = wanted.status == "failed" and not wanted.metric and not wanted.judge
    of_score = [
        text
        for text, given in (
            ("+s.metric = :metric", wanted.metric),
            (_STATUS.get(wanted.status, ""), wanted.status),
            ("s.judge = :judge", wanted.judge),
        )
        if given
    ]
    where = [
        text
        for text, given in (
            (
                "EXISTS (SELECT 1 FROM scores s WHERE s.record_id = e.record_id AND "
                + " AND ".join(of_score)
                + ")",
                of_score and not only_failed,
            ),
            (
                "e.record_id IN "
                "(SELECT record_id FROM scores WHERE status = 'failed' AND status != 'scored')",
                only_failed,
            ),
            ("EXISTS (SELECT 1 FROM json_each(e.tags) WHERE value = :tag)", wanted.tag),
            ("CAST(json_extract(e.metadata, '$.version') AS TEXT) = :version", wanted.version),
            ("CAST(json_extract(e.metadata, '$.route') AS TEXT) = :route", wanted.route),
            ("(e.question LIKE :text ESCAPE '!' OR e.answer LIKE :text ESCAPE '!')", wanted.text),
            ("e.trace_id = :trace", wanted.trace),
        )
        if given
    ]
    return where, wanted.parameters()


def _scores(
    connection: sqlite3.Connection, ids: list[str]
) -> defaultdict[str, list[tuple[str, float | None, bool | None, str]]]:
    found: defaultdict[str, list[tuple[str, float | None, bool | None, str]]] = defaultdict(list)
    marks = ", ".join("?" * len(ids))
    for record_id, metric, value, passed, status in connection.execute(
        f"SELECT record_id, metric, value, passed, status FROM scores WHERE record_id IN ({marks}) "
        "ORDER BY record_id, position",
        ids,
    ):
        found[record_id].append((metric, value, None if passed is None else bool(passed), status))
    return found
