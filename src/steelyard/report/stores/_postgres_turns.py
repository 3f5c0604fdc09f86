"""The list of turns out of Postgres: filtered, newest first, paged by key."""

from __future__ import annotations

from typing import Any

import psycopg

from steelyard.report.stores._rows import order_of, turn_rows
from steelyard.report.turns import TurnFilter, TurnRow

Rows = dict[str, Any]
_STATUS = {
    "passed": "s.passed = 1",
    "not_passed": "s.passed = 0",
    "failed": "s.status = 'failed'",
    "not_applicable": "s.status = 'not_applicable'",
}


def turns_of(
    connection: psycopg.Connection[Any],
    wanted: TurnFilter,
    *,
    before: tuple[float, str] | None,
    after: tuple[float, str] | None,
    limit: int,
) -> list[TurnRow]:
    """A page of turns, newest first; see `ResultsReader.turns`."""
    where, values = _conditions(wanted)
    if key := before or after:
        where.append(f"(e.evaluated_at, e.record_id) {'<' if before else '>'} (%(time)s, %(id)s)")
        values |= {"time": key[0], "id": key[1]}
    order = order_of(before, after)
    found = connection.execute(
        f"""SELECT e.record_id, e.evaluated_at, left(e.question, 400) FROM evaluations e
            WHERE {" AND ".join(where) or "true"}
            ORDER BY e.evaluated_at {order}, e.record_id {order} LIMIT %(limit)s""",
        {**values, "limit": limit},
    ).fetchall()
    scored = connection.execute(
        "SELECT record_id, metric, value, passed, status FROM scores WHERE record_id = ANY(%s) "
        "ORDER BY record_id, position",
        ([row[0] for row in found],),
    )
    return turn_rows(found, scored, order)


def _conditions(wanted: TurnFilter) -> tuple[list[str], Rows]:
    of_score = [
        text
        for text, given in (
            ("s.metric = %(metric)s", wanted.metric),
            (_STATUS.get(wanted.status, ""), wanted.status),
            ("s.judge = %(judge)s", wanted.judge),
        )
        if given
    ]
    matching = " AND ".join(["s.record_id = e.record_id", *of_score])
    where = [
        text
        for text, given in (
            (f"EXISTS (SELECT 1 FROM scores s WHERE {matching})", of_score),
            ("e.tags @> jsonb_build_array(%(tag)s::text)", wanted.tag),
            ("e.metadata ->> 'version' = %(version)s", wanted.version),
            ("e.metadata ->> 'route' = %(route)s", wanted.route),
            ("(e.question ILIKE %(text)s ESCAPE '!' OR e.answer ILIKE %(text)s ESCAPE '!')", wanted.text),
            ("e.trace_id = %(trace)s", wanted.trace),
        )
        if given
    ]
    return where, wanted.parameters()
