"""How the turns that are asked for are found fastest in a results file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from steelyard.report.queries import TurnFilter
from steelyard.report.stores._turns import TurnQuery, conditions_of

_OF_INDEX: Final = {
    "not_passed": "passed = 0",
    "failed": "status = 'failed' AND status != 'scored'",
    "not_applicable": "status = 'not_applicable' AND status != 'scored'",
}
"""How an index finds the scores of a status; that they passed has none, as most do."""
# From each to the next by the index: what a version has does not matter, only how many there are.
VERSIONS: Final = """WITH RECURSIVE version(name) AS (
        SELECT min(value) FROM turn_keys WHERE kind = 'version'
        UNION ALL SELECT (SELECT min(value) FROM turn_keys WHERE kind = 'version' AND value > name)
        FROM version WHERE name IS NOT NULL LIMIT 400)
    SELECT name, (SELECT min(happened_at) FROM turn_keys WHERE kind = 'version' AND value = name)
    FROM version WHERE name IS NOT NULL"""
"""Each version, and when it was first used."""
# By a jump through the index from each to the next.
_METRICS: Final = """WITH RECURSIVE names (name) AS (SELECT min(metric) FROM scores UNION ALL
    SELECT (SELECT min(metric) FROM scores WHERE metric > name) FROM names WHERE name IS NOT NULL)
    SELECT name FROM names WHERE name IS NOT NULL"""
_KEYED: Final = ("tag", "version", "route", "judge")
_FEW: Final = 2_000
"""So many are looked up one by one; of more, one is near the newest turn."""
_HAS_TEXT: Final = "(e.question LIKE :text ESCAPE '!' OR e.answer LIKE :text ESCAPE '!')"
_HOLDING: Final = f"SELECT e.record_id FROM evaluations e WHERE {_HAS_TEXT} LIMIT {_FEW + 1}"
"""Turns with a text, as they lie in the file: half the time of a search in order of time, if none has it."""


def chosen(connection: sqlite3.Connection, wanted: TurnFilter, *, is_after: bool) -> TurnQuery | None:
    """By what the turns are found fastest; None where it is sure that no turn fits."""
    metrics = _metrics(connection, wanted)
    few = _few(connection, wanted, metrics)
    keys = _keys(connection, wanted)
    if few is None or keys is None:
        return None
    where = _conditions(wanted, keys) + few
    values = wanted.parameters() | {"metrics": json.dumps(metrics)}
    if wanted.text and not (few or keys or is_after):
        holding = _holding(connection, wanted)
        if holding == []:
            return None
        if holding is not None:
            where.append("e.record_id IN (SELECT value FROM json_each(:holding))")
            values["holding"] = json.dumps(holding)
    if not keys or len(wanted.chosen(keys[0])) > 1:
        return TurnQuery(where=where, values=values)
    source = "turn_keys k CROSS JOIN evaluations e ON e.record_id = k.record_id"
    where.append(f"k.kind = '{keys[0]}' AND k.value = :{keys[0]}0")
    return TurnQuery(where=where, values=values, source=source, ordered="k")


def _holding(connection: sqlite3.Connection, wanted: TurnFilter) -> list[str] | None:
    """The turns with a text, if they are few."""
    holding = [row[0] for row in connection.execute(_HOLDING, wanted.parameters())]
    return holding if len(holding) <= _FEW else None


def has_labels(connection: sqlite3.Connection) -> bool:
    """Whether anybody has ever labelled a turn of this file."""
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'labels'").fetchone())


def _keys(connection: sqlite3.Connection, wanted: TurnFilter) -> Sequence[str] | None:
    """What is filtered by that has an index, rarest first; None if no turn has one of them.

    One value leads to its turns in order of time, so that what has several comes last.
    """
    given = [kind for kind in _KEYED if wanted.chosen(kind)]
    counts: dict[str, tuple[bool, int]] = {}
    for kind in given:
        values = wanted.chosen(kind)
        held = ", ".join("?" * len(values))
        some = f"SELECT 1 FROM turn_keys WHERE kind = ? AND value IN ({held}) LIMIT {_FEW}"
        (found,) = connection.execute(f"SELECT count(*) FROM ({some})", (kind, *values)).fetchone()
        if not found:
            return None
        counts[kind] = len(values) > 1, found
    return sorted(counts, key=counts.__getitem__)


def _metrics(connection: sqlite3.Connection, wanted: TurnFilter) -> list[str]:
    """The metrics of the file among which a score is looked for."""
    asked = wanted.chosen("metric")
    return [one for (one,) in connection.execute(_METRICS) if not asked or one in asked]


def _few(connection: sqlite3.Connection, wanted: TurnFilter, metrics: list[str]) -> list[str] | None:
    """A condition that finds the turns of a rare outcome by its index; None where no turn has it."""
    if wanted.metric and not metrics:
        return None
    if (wanted.label or wanted.noted) and not has_labels(connection):
        return None
    statuses = wanted.chosen("status")
    if len(statuses) != 1 or statuses[0] not in _OF_INDEX:
        return []
    which = _OF_INDEX[statuses[0]]
    rare = f"SELECT record_id FROM scores WHERE metric IN (SELECT value FROM json_each(:metrics)) AND {which}"
    count = f"SELECT count(*) FROM ({rare} LIMIT {_FEW + 1})"
    (found,) = connection.execute(count, {"metrics": json.dumps(metrics)}).fetchone()
    return [f"e.record_id IN ({rare})"] if found <= _FEW else []


def _conditions(wanted: TurnFilter, keys: Sequence[str]) -> list[str]:
    of_turn = {
        "tag": "EXISTS (SELECT 1 FROM json_each(e.tags) WHERE value {})",
        "version": "CAST(json_extract(e.metadata, '$.version') AS TEXT) {}",
        "route": "CAST(json_extract(e.metadata, '$.route') AS TEXT) {}",
        "text": _HAS_TEXT,
    }
    of_turn |= {kind: _LOOKED_UP.format("{}", kind=kind) for kind in keys}
    if keys and len(wanted.chosen(keys[0])) == 1:
        of_turn[keys[0]] = ""  # leads to the turns
    # The plus keeps SQLite from looking a metric up for every turn: a turn has few scores, a metric many.
    return conditions_of(wanted, of_turn, plus="+")


_LOOKED_UP: Final = """EXISTS (SELECT 1 FROM turn_keys WHERE kind = '{kind}' AND value {}
    AND happened_at = e.happened_at AND record_id = e.record_id)"""
