"""The list of turns out of a results file: filtered, newest first, paged by key."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from steelyard.report.stores._rows import order_of, turn_rows
from steelyard.report.turns import TurnFilter, TurnRow
from steelyard.sinks.sqlite.sums import has_keys, has_sums, metrics_of

_STATUS = {
    "passed": "+s.passed = 1",
    "not_passed": "+s.passed = 0",
    "failed": "s.status = 'failed'",
    "not_applicable": "s.status = 'not_applicable'",
}
_OF_INDEX: Final = {
    "not_passed": "passed = 0",
    "failed": "status = 'failed' AND status != 'scored'",
    "not_applicable": "status = 'not_applicable' AND status != 'scored'",
}
"""How an index finds the scores of a status; that they passed has none, as most do."""
_KEYED: Final = ("tag", "version", "route", "judge")
_FEW: Final = 2_000
"""So many are looked up one by one; of more, one is near the newest turn."""
_HAS_TEXT: Final = "(e.question LIKE :text ESCAPE '!' OR e.answer LIKE :text ESCAPE '!')"
_HOLDING: Final = f"SELECT e.record_id FROM evaluations e WHERE {_HAS_TEXT} LIMIT {_FEW + 1}"
"""Turns with a text, as they lie in the file: half the time of a search in order of time, if none has it."""


def turns_of(
    connection: sqlite3.Connection,
    wanted: TurnFilter,
    *,
    before: tuple[float, str] | None,
    after: tuple[float, str] | None,
    limit: int,
) -> list[TurnRow]:
    """A page of turns, newest first; see `ResultsReader.turns`."""
    narrowed = _narrowed(connection, wanted, is_after=after is not None)
    if narrowed is None:
        return []
    where, values, keys = narrowed
    source, turn = "evaluations e", "e"
    if keys:
        kind = next(iter(keys))
        source, turn = "turn_keys k CROSS JOIN evaluations e ON e.record_id = k.record_id", "k"
        where.append(f"k.kind = '{kind}' AND k.value = :{kind}")
    if key := before or after:
        where.append(f"({turn}.evaluated_at, {turn}.record_id) {'<' if before else '>'} (:time, :id)")
        values |= {"time": key[0], "id": key[1]}
    order = order_of(before, after)
    query = f"""SELECT e.record_id, e.evaluated_at, substr(e.question, 1, 400) FROM {source}
        WHERE {" AND ".join(where) or "1"}
        ORDER BY {turn}.evaluated_at {order}, {turn}.record_id {order} LIMIT :limit"""
    found = connection.execute(query, {**values, "limit": limit}).fetchall()
    scored = connection.execute(
        f"SELECT record_id, metric, value, passed, status FROM scores WHERE record_id IN "
        f"({', '.join('?' * len(found))}) ORDER BY record_id, position",
        [row[0] for row in found],
    )
    return turn_rows(found, scored, order)


def _narrowed(
    connection: sqlite3.Connection, wanted: TurnFilter, *, is_after: bool
) -> tuple[list[str], dict[str, Any], Mapping[str, int]] | None:
    """Conditions, their values, and what is found by an index; None where it is sure that no turn fits."""
    metrics = [one for one in metrics_of(connection) if wanted.metric in ("", one)]
    few = _few(connection, wanted, metrics)
    keys = _keys(connection, wanted)
    if few is None or keys is None:
        return None
    where, values = _conditions(wanted, keys=keys)
    where += few
    values["metrics"] = json.dumps(metrics)
    if wanted.text and not (few or keys or is_after):
        holding = [row[0] for row in connection.execute(_HOLDING, wanted.parameters())]
        if not holding:
            return None
        if len(holding) <= _FEW:
            where.append("e.record_id IN (SELECT value FROM json_each(:holding))")
            values["holding"] = json.dumps(holding)
    return where, values, keys


def _keys(connection: sqlite3.Connection, wanted: TurnFilter) -> Mapping[str, int] | None:
    """What is filtered by that has an index, by how many turns have it, fewest first; None if none has."""
    given = {kind: value for kind in _KEYED if (value := getattr(wanted, kind))}
    if not given or not has_keys(connection):
        return {}
    count = f"SELECT count(*) FROM (SELECT 1 FROM turn_keys WHERE kind = ? AND value = ? LIMIT {_FEW})"
    counts = {kind: connection.execute(count, (kind, value)).fetchone()[0] for kind, value in given.items()}
    return dict(sorted(counts.items(), key=lambda item: item[1])) if all(counts.values()) else None


def _few(connection: sqlite3.Connection, wanted: TurnFilter, metrics: list[str]) -> list[str] | None:
    """A condition that finds the turns of a rare outcome by its index; None where no turn has it."""
    if wanted.metric and not metrics:
        return None
    if wanted.status == "passed":
        return [] if _any_passed(connection, metrics) else None
    which = _OF_INDEX.get(wanted.status)
    if which is None:
        return []
    rare = f"SELECT record_id FROM scores WHERE metric IN (SELECT value FROM json_each(:metrics)) AND {which}"
    count = f"SELECT count(*) FROM ({rare} LIMIT {_FEW + 1})"
    (found,) = connection.execute(count, {"metrics": json.dumps(metrics)}).fetchone()
    return [f"e.record_id IN ({rare})"] if found <= _FEW else []


def _any_passed(connection: sqlite3.Connection, metrics: list[str]) -> bool:
    """Whether a score of these may have passed; without a threshold none does."""
    if not has_sums(connection) or connection.execute("SELECT 1 FROM stale_hours LIMIT 1").fetchone():
        return True
    query = "SELECT 1 FROM score_sums WHERE metric = ? AND passes_value > 0 LIMIT 1"
    return any(connection.execute(query, (metric,)).fetchone() for metric in metrics)


def _conditions(wanted: TurnFilter, *, keys: Mapping[str, int]) -> tuple[list[str], dict[str, Any]]:
    # The plus keeps SQLite from looking a metric up for every turn: a turn has few scores, a metric many.
    of_score = [
        text
        for text, given in (
            ("+s.metric = :metric", wanted.metric),
            (_STATUS.get(wanted.status, ""), wanted.status),
            ("s.judge = :judge", wanted.judge),
        )
        if given
    ]
    of_turn = {
        "tag": "EXISTS (SELECT 1 FROM json_each(e.tags) WHERE value = :tag)",
        "version": "CAST(json_extract(e.metadata, '$.version') AS TEXT) = :version",
        "route": "CAST(json_extract(e.metadata, '$.route') AS TEXT) = :route",
    }
    # The first key leads to the turns, the others are looked up.
    of_turn |= dict.fromkeys(list(keys)[:1], "")
    of_turn |= {kind: _LOOKED_UP.format(kind=kind) for kind in list(keys)[1:]}
    where = [
        text
        for text, given in (
            (
                "EXISTS (SELECT 1 FROM scores s WHERE s.record_id = e.record_id AND "
                + " AND ".join(of_score)
                + ")",
                of_score,
            ),
            *((condition, getattr(wanted, kind)) for kind, condition in of_turn.items()),
            (_HAS_TEXT, wanted.text),
            ("e.trace_id = :trace", wanted.trace),
        )
        if given and text
    ]
    return where, wanted.parameters()


_LOOKED_UP: Final = """EXISTS (SELECT 1 FROM turn_keys WHERE kind = '{kind}' AND value = :{kind}
    AND evaluated_at = e.evaluated_at AND record_id = e.record_id)"""
