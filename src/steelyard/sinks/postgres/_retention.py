"""Old results deleted from Postgres."""

from __future__ import annotations

from typing import Any, Final

from psycopg import Connection

from steelyard.sinks._retention import Retention
from steelyard.sinks.postgres._schema import take_turns

_STEP: Final = 200
"""Turns deleted in one transaction: some milliseconds, so that writers and readers hardly notice."""


def delete_oldest(connection: Connection[Any], keep: Retention, *, now: float) -> int:
    """Delete the oldest turns that exceed a limit, at most 200, in the caller's transaction.

    Several processes may do so at once, beside others that write.

    Returns:
        How many were deleted; 0 where nothing exceeds a limit.

    Raises:
        psycopg.Error: If the database cannot be used.
    """
    take_turns(connection)
    records = _oldest(connection, keep, now)
    for table in ("scores", "bodies", "evaluations") if records else ():
        connection.execute(f"DELETE FROM {table} WHERE record_id = ANY(%s)", (records,))
    return len(records)


def stored_bytes(connection: Connection[Any]) -> int:
    """Size of the tables, with what is free in them."""
    row = connection.execute(
        "SELECT sum(pg_total_relation_size(name::regclass))::bigint "
        "FROM unnest(ARRAY['bodies', 'evaluations', 'scores']) AS name"
    ).fetchone()
    return int(row[0]) if row else 0


def _oldest(connection: Connection[Any], keep: Retention, now: float) -> list[str]:
    """Ids of the oldest turns that exceed a limit, at most a step of them."""
    excess = 0
    if keep.turns is not None:
        (turns,) = connection.execute("SELECT count(*) FROM evaluations").fetchone() or (0,)
        excess = min(_STEP, max(0, turns - keep.turns))
    before = float("-inf") if keep.seconds is None else now - keep.seconds
    oldest = connection.execute(
        "SELECT record_id, happened_at FROM evaluations ORDER BY happened_at, record_id LIMIT %s", (_STEP,)
    ).fetchall()
    return [record for place, (record, at) in enumerate(oldest) if place < excess or at < before]
