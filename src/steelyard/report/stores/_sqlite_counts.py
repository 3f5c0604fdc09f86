"""How many turns a scope has and how many scores without a value, from what a results file keeps of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from steelyard.report.queries import Missing, Scope, Totals
from steelyard.report.stores._rows import COUNTED, evidence_of
from steelyard.report.stores._sqlite_hours import Hours, count_missing, count_scores, hours_of
from steelyard.report.stores._tables import values_of
from steelyard.sinks.sqlite.sums import has_keys, has_sums

_LATEST: Final = 1_000
_OF_TAG: Final = """FROM turn_keys k WHERE k.kind = 'tag' AND k.value = :tag
    AND k.happened_at >= coalesce(:since, -1e300) AND k.happened_at < coalesce(:until, 1e300)"""


def brief_totals(connection: sqlite3.Connection, scope: Scope, *, turns: str, scores: str) -> Totals:
    """How many turns, and when; whether they have content is asked of the latest 1,000."""
    found, first, last, *kinds = _extent(connection, scope, turns, scores)
    (content,) = connection.execute(
        "SELECT count(record_status) FROM (SELECT record_status FROM evaluations "
        f"ORDER BY happened_at DESC LIMIT {_LATEST})"
    ).fetchone()
    evidence = evidence_of(found, kinds) if kinds else {}
    return Totals(turns=found, with_content=content, first=first, last=last, evidence=evidence)


def _extent(connection: sqlite3.Connection, scope: Scope, turns: str, scores: str) -> Sequence[Any]:
    """How many turns, when the first and when the last; from the narrowest index that tells."""
    what = "count(*), min({0}.happened_at), max({0}.happened_at)"
    query = f"SELECT {what.format('e')}, {COUNTED} FROM evaluations e WHERE {turns}"
    if scope.evidence is not None:
        return tuple(connection.execute(query, values_of(scope)).fetchone())
    if scope.tag is not None and has_keys(connection) and (scope.metric is None or has_sums(connection)):
        if scope.metric is not None:
            return _extent_of_tag(connection, scope)
        query = f"SELECT {what.format('k')} {_OF_TAG}"
    elif scope.metric is not None and scope.tag is None:
        query = f"SELECT {what.format('s')} FROM scores s WHERE {scores}"
    found: Sequence[Any] = connection.execute(query, values_of(scope)).fetchone()
    return found


def _extent_of_tag(connection: sqlite3.Connection, scope: Scope) -> Sequence[Any]:
    """The turns of a tag that have a metric: counted by sums, the first and the last one looked up."""
    with hours_of(connection, scope) as hours:
        found = 0 if hours is None else count_scores(connection, hours)
    ends: list[float] = []
    # `+metric` keeps SQLite to the index by record; by metric it would go through all of its scores.
    for order in ("ASC", "DESC") if found else ():
        row = connection.execute(
            f"""SELECT k.happened_at {_OF_TAG} AND EXISTS
                (SELECT 1 FROM scores WHERE record_id = k.record_id AND +metric = :metric)
                ORDER BY k.happened_at {order} LIMIT 1""",
            values_of(scope),
        ).fetchone()
        ends += row or ()
    return (found, *ends) if len(ends) == 2 else (found, None, None)


def missing_of_tag(connection: sqlite3.Connection, hours: Hours) -> list[Missing]:
    """Counts of a tag's scores without a value, most frequent first."""
    counts = count_missing(connection, hours)
    return [
        Missing(
            metric=metric,
            status=status,
            cause=cause,
            explanation=explanation_of(connection, _example(connection, (metric, status, cause))),
            count=count,
        )
        for (metric, status, cause), count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]


def _example(connection: sqlite3.Connection, like: tuple[str, str, str]) -> int:
    row = connection.execute(
        "SELECT rowid FROM scores WHERE metric = :metric AND status = :status AND status != 'scored' "
        "AND (cause = :cause OR cause IS NULL AND :cause = 'unknown') LIMIT 1",
        dict(zip(("metric", "status", "cause"), like, strict=True)),
    ).fetchone()
    return row[0] if row else 0


def explanation_of(connection: sqlite3.Connection, row: int) -> str:
    """What was said of a score; empty where it is gone."""
    found = connection.execute("SELECT explanation FROM scores WHERE rowid = ?", (row,)).fetchone()
    return str(found[0]) if found else ""
