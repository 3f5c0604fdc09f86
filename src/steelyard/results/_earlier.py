"""Tables of an earlier version, copied into today's; what they lack is read from bodies, or stays empty."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from steelyard.errors import InvalidRecord
from steelyard.results._schema import Execute, unpack

_AT_ONCE: Final = 1_000
# What cut passages out of a prompt once said so in a note alone.
_ONCE_GUESSED: Final = "contexts_from_prompt"


def copy_results(
    execute: Execute, *, columns: Callable[[str], Collection[str]], make: Callable[[], None]
) -> tuple[int, int]:
    """Make today's tables and fill them from earlier ones; in the caller's transaction.

    Sessions, users and tenants that an earlier version did not ask for are not known, and stay empty. Returns
    how many turns there are, and how many say when they happened; others stay at the time of their judging.
    """
    for table in ("evaluations", "scores"):
        execute(f"ALTER TABLE {table} RENAME TO earlier_{table}", {})
    make()
    if "drawn" not in columns("labels"):
        execute("ALTER TABLE labels ADD COLUMN drawn double precision", {})
    execute("CREATE TEMP TABLE told (record_id text PRIMARY KEY, at double precision, evidence text)", {})
    known = columns("earlier_evaluations")
    for row in _told(execute) if not {"happened_at", "evidence"} <= set(known) else ():
        execute("INSERT INTO told VALUES (:record_id, :at, :evidence)", row)
    at = "e.happened_at" if "happened_at" in known else "coalesce(t.at, e.evaluated_at)"
    evidence = "e.evidence" if "evidence" in known else "t.evidence"
    shared = _shared(known, columns("evaluations"))
    count = execute(
        f"""INSERT INTO evaluations (happened_at, evidence, {", ".join(shared)})
            SELECT {at}, {evidence}, {", ".join(f"e.{name}" for name in shared)}
            FROM earlier_evaluations e LEFT JOIN told t ON t.record_id = e.record_id ORDER BY 1""",
        {},
    ).rowcount
    shared = _shared(columns("earlier_scores"), columns("scores"))
    execute(
        f"""INSERT INTO scores (turn, happened_at, {", ".join(shared)})
            SELECT e.turn, e.happened_at, {", ".join(f"s.{name}" for name in shared)}
            FROM earlier_scores s JOIN evaluations e ON e.record_id = s.record_id""",
        {},
    )
    ((told,),) = execute("SELECT count(at) FROM told", {}).fetchall()
    for table in ("told", "earlier_evaluations", "earlier_scores"):
        execute(f"DROP TABLE {table}", {})
    return count, count if "happened_at" in known else told


def _shared(known: Collection[str], wanted: Collection[str]) -> list[str]:
    return [name for name in wanted if name in known and name not in ("turn", "happened_at", "evidence")]


def _told(execute: Execute) -> Iterator[dict[str, Any]]:
    after = ""
    while rows := execute(
        f"""SELECT e.record_id, b.body FROM earlier_evaluations e JOIN bodies b ON b.id = e.body
            WHERE e.record_id > :after ORDER BY e.record_id LIMIT {_AT_ONCE}""",
        {"after": after},
    ).fetchall():
        for record_id, body in rows:
            at, evidence = _told_in(bytes(body))
            yield {"record_id": record_id, "at": at, "evidence": evidence}
        after = rows[-1][0]


def _told_in(body: bytes) -> tuple[float | None, str | None]:
    """When an old turn happened, and how its passages are known; None for what its body does not say."""
    try:
        record = unpack(body).get("record")
    except InvalidRecord:
        return None, None
    if not isinstance(record, dict):
        return None, None
    timings = record.get("timings")
    at = timings.get("started_at") if isinstance(timings, dict) else None
    found = float(at) if isinstance(at, float | int) and math.isfinite(at) else None
    source = record.get("contexts_source")
    kind = "none" if not record.get("contexts") else source if source in ("told", "guessed") else "known"
    if kind == "known" and any(str(note).startswith(_ONCE_GUESSED) for note in record.get("notes") or ()):
        kind = "guessed"
    return found, kind
