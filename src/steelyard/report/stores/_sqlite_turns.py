"""How the turns that are asked for are found fastest in a results file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from steelyard.report.queries import TurnFilter
from steelyard.report.stores._turns import Choice, conditions_of
from steelyard.sinks.sqlite.sums import ALL, has_keys, has_sums, metrics_of, summed_since

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


def chosen(connection: sqlite3.Connection, wanted: TurnFilter, *, is_after: bool) -> Choice | None:
    """By what the turns are found fastest; None where it is sure that no turn fits."""
    metrics = [one for one in metrics_of(connection) if wanted.metric in ("", one)]
    few = _few(connection, wanted, metrics)
    keys = _keys(connection, wanted)
    if few is None or keys is None:
        return None
    where = _conditions(wanted, keys) + few
    values = wanted.parameters() | {"metrics": json.dumps(metrics)}
    if wanted.text and not (few or keys or is_after):
        holding = [row[0] for row in connection.execute(_HOLDING, wanted.parameters())]
        if not holding:
            return None
        if len(holding) <= _FEW:
            where.append("e.record_id IN (SELECT value FROM json_each(:holding))")
            values["holding"] = json.dumps(holding)
    if not keys:
        return Choice(where=where, values=values)
    source = "turn_keys k CROSS JOIN evaluations e ON e.record_id = k.record_id"
    where.append(f"k.kind = '{keys[0]}' AND k.value = :{keys[0]}")
    return Choice(where=where, values=values, source=source, ordered="k")


def _keys(connection: sqlite3.Connection, wanted: TurnFilter) -> Sequence[str] | None:
    """What is filtered by that has an index, rarest first; None if no turn has one of them."""
    given = {kind: value for kind in _KEYED if (value := getattr(wanted, kind))}
    if not given or not has_keys(connection):
        return ()
    count = f"SELECT count(*) FROM (SELECT 1 FROM turn_keys WHERE kind = ? AND value = ? LIMIT {_FEW})"
    counts = {kind: connection.execute(count, (kind, value)).fetchone()[0] for kind, value in given.items()}
    return sorted(counts, key=counts.__getitem__) if all(counts.values()) else None


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
    if not has_sums(connection) or summed_since(connection, ALL) != 0:
        return True
    if connection.execute("SELECT 1 FROM stale_hours LIMIT 1").fetchone():
        return True
    query = "SELECT 1 FROM hour_sums WHERE tag = X'' AND metric = ? AND passes_value > 0 LIMIT 1"
    return any(connection.execute(query, (metric,)).fetchone() for metric in metrics)


def _conditions(wanted: TurnFilter, keys: Sequence[str]) -> list[str]:
    of_turn = {
        "tag": "EXISTS (SELECT 1 FROM json_each(e.tags) WHERE value = :tag)",
        "version": "CAST(json_extract(e.metadata, '$.version') AS TEXT) = :version",
        "route": "CAST(json_extract(e.metadata, '$.route') AS TEXT) = :route",
        "text": _HAS_TEXT,
    }
    # The first key leads to the turns, the others are looked up.
    of_turn |= dict.fromkeys(keys[:1], "")
    of_turn |= {kind: _LOOKED_UP.format(kind=kind) for kind in keys[1:]}
    # The plus keeps SQLite from looking a metric up for every turn: a turn has few scores, a metric many.
    return conditions_of(wanted, of_turn, plus="+")


_LOOKED_UP: Final = """EXISTS (SELECT 1 FROM turn_keys WHERE kind = '{kind}' AND value = :{kind}
    AND happened_at = e.happened_at AND record_id = e.record_id)"""
