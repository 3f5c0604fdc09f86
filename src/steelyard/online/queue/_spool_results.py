"""Results in a spool file until every sink has them.

`results` has each once; `parked` says for which sinks one is kept that nobody holds as a whole any more. Its
`lease_until` in `results` is NULL then. A result is deleted with the last sink that waits for it.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard._internal.logs import SafeLogger
from steelyard.online.queue._protocol import Parking
from steelyard.online.queue._spool_file import add
from steelyard.online.queue._turns import Leased, Undelivered
from steelyard.scores import evaluation_from_json

_log = SafeLogger("steelyard.online")


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """The clock, for leases that begin now."""

    now: float
    """Leases that end by now are over."""
    until: float
    """When those end that begin now."""
    before: float
    """What ends later was leased before the machine was started, and is over."""


def store(db: sqlite3.Connection, leased: Leased, body: bytes, *, until: float) -> None:
    """Store the result of a turn, leased to whoever has judged it."""
    db.execute(
        "INSERT INTO results VALUES (?, CAST(? AS TEXT), ?, ?)", (leased.seq, body, leased.lease, until)
    )
    add(db, "undelivered")
    add(db, "result_bytes", count=len(body))


def lease(db: sqlite3.Connection, times: Times, most: int) -> list[Undelivered]:
    """Lease results whose holder has died."""
    # Looked for first: most of the time there is none, and nothing is written then.
    found = db.execute(
        "SELECT seq FROM results WHERE lease_until <= ? OR lease_until > ? ORDER BY seq LIMIT ?",
        (times.now, times.before, most),
    ).fetchall()
    name = uuid.uuid4().hex
    db.executemany(
        "UPDATE results SET lease = ?, lease_until = ? WHERE seq = ?",
        [(name, times.until, seq) for (seq,) in found],
    )
    return _read(db, [seq for (seq,) in found], name)


def lease_parked(db: sqlite3.Connection, times: Times, most: int, sink: str) -> list[Undelivered]:
    """Lease results that are kept for a sink."""
    found = db.execute(
        "SELECT seq FROM parked WHERE sink = ? AND (lease_until <= ? OR lease_until > ?)"
        " ORDER BY seq LIMIT ?",
        (sink, times.now, times.before, most),
    ).fetchall()
    name = uuid.uuid4().hex
    db.executemany(
        "UPDATE parked SET lease = ?, lease_until = ? WHERE sink = ? AND seq = ?",
        [(name, times.until, sink, seq) for (seq,) in found],
    )
    return _read(db, [seq for (seq,) in found], name, sink)


def park(db: sqlite3.Connection, results: Sequence[Parking]) -> None:
    """Keep results for the sinks that do not have them, and give up their leases."""
    for result, sinks in results:
        held = (result.seq, result.lease)
        if result.sink:
            db.execute(
                "UPDATE parked SET lease_until = 0 WHERE seq = ? AND lease = ? AND sink = ?",
                (*held, result.sink),
            )
        elif db.execute(
            "UPDATE results SET lease = NULL, lease_until = NULL WHERE seq = ? AND lease = ?", held
        ).rowcount:
            db.executemany(
                "INSERT OR IGNORE INTO parked VALUES (?, ?, NULL, 0)", [(sink, result.seq) for sink in sinks]
            )


def release(db: sqlite3.Connection, results: Sequence[Undelivered]) -> None:
    """Give up leases; whoever comes next delivers these results."""
    for result in results:
        if result.sink:
            park(db, [(result, ())])
        else:
            held = (result.seq, result.lease)
            db.execute("UPDATE results SET lease_until = 0 WHERE seq = ? AND lease = ?", held)


def delivered(db: sqlite3.Connection, results: Sequence[Undelivered]) -> None:
    """The sinks have these results; of a parked one, its sink has it."""
    for result in results:
        held = (result.seq, result.lease)
        if result.sink:
            ended = db.execute(
                "DELETE FROM parked WHERE seq = ? AND lease = ? AND sink = ?", (*held, result.sink)
            ).rowcount
            if ended:
                _forget_unless_awaited(db, result.seq)
        elif db.execute("SELECT 1 FROM results WHERE seq = ? AND lease = ?", held).fetchone():
            _forget(db, result.seq)


def move(db: sqlite3.Connection, sink: str, to: str) -> int:
    """Have what waits for a sink wait for another, or for none; returns how much that was."""
    seqs = db.execute("DELETE FROM parked WHERE sink = ? RETURNING seq", (sink,)).fetchall()
    for (seq,) in seqs:
        if to:
            db.execute("INSERT OR IGNORE INTO parked VALUES (?, ?, NULL, 0)", (to, seq))
        _forget_unless_awaited(db, seq)
    return len(seqs)


def _read(db: sqlite3.Connection, seqs: Sequence[int], lease: str, sink: str = "") -> list[Undelivered]:
    """Results that were leased; one that cannot be read is given up."""
    results = []
    for seq in seqs:
        row = db.execute("SELECT CAST(body AS BLOB) FROM results WHERE seq = ?", (seq,)).fetchone()
        try:
            results.append(Undelivered(seq, lease, evaluation_from_json(row[0]), sink))
        except Exception:  # noqa: BLE001 - a row may hold anything
            # The turn counts as evaluated; its result is lost, and nothing waits for it.
            _forget(db, seq)
            _log.error("a stored result (seq %d) cannot be read; it is not delivered", seq)
    return results


def _forget_unless_awaited(db: sqlite3.Connection, seq: int) -> None:
    """Delete a result that no sink waits for any more."""
    if not db.execute("SELECT 1 FROM parked WHERE seq = ?", (seq,)).fetchone():
        _forget(db, seq)


def _forget(db: sqlite3.Connection, seq: int) -> None:
    """Delete a result."""
    db.execute("DELETE FROM parked WHERE seq = ?", (seq,))
    size = db.execute(
        "DELETE FROM results WHERE seq = ? RETURNING LENGTH(CAST(body AS BLOB))", (seq,)
    ).fetchone()
    if size is not None:
        add(db, "undelivered", count=-1)
        add(db, "result_bytes", count=-size[0])
