"""A budget that several processes share: what was used and what is set aside, counted in one SQLite file.

Windows are on the wall clock, so that they outlast a restart of the processes and of the machine. Where that
clock is set back, the window goes on from then; what was used in it stays used.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from steelyard.online.queue._turns import Leased

TABLES = """
CREATE TABLE IF NOT EXISTS budget (
    kind TEXT NOT NULL,
    seconds REAL NOT NULL,
    started REAL NOT NULL,
    used REAL NOT NULL DEFAULT 0,
    typical REAL,
    PRIMARY KEY (kind, seconds)
) STRICT;
CREATE TABLE IF NOT EXISTS reserved (
    seq INTEGER NOT NULL,
    lease TEXT NOT NULL,
    kind TEXT NOT NULL,
    amount REAL NOT NULL,
    PRIMARY KEY (seq, kind)
) STRICT;
"""

_LEARNED = "CASE WHEN COALESCE(typical, 0) = 0 THEN :amount ELSE typical + (:amount - typical) / 10 END"
UNKNOWN_PAUSE = 0.1
"""Seconds until a turn asks again while the first one, which tells what a turn uses, is being judged."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one turn asks of one window."""

    kind: str
    seconds: float
    limit: float
    typical: float | None
    """What a turn uses as far as this process knows; what the file knows comes first."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One window over all processes."""

    kind: str
    seconds: float
    age: float
    """Seconds since it began."""
    used: float
    reserved: float
    typical: float | None
    """What a turn uses on average; None before the first one."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The answer to a claim."""

    wait: float
    """Seconds until there may be enough; 0 where what a turn uses was set aside."""
    windows: Sequence[Standing]


@runtime_checkable
class SharesBudget(Protocol):
    """A queue that counts what judging uses over all processes."""

    async def claim(self, leased: Leased, claims: Sequence[Claim], owed: Mapping[str, float]) -> Granted:
        """Set aside what a leased turn uses; `owed` was used past the queue, and is entered too."""

    async def bill(self, leased: Leased, used: Mapping[str, float] | None) -> None:
        """What a turn has used, in place of what was set aside; None where it was not judged."""


def claim(
    db: sqlite3.Connection, leased: Leased, claims: Sequence[Claim], owed: Mapping[str, float], *, now: float
) -> Granted:
    """Answer a claim, inside a transaction that holds the file's write lock."""
    # IGNORE: the first process to ask begins the window for all of them.
    db.executemany(
        "INSERT OR IGNORE INTO budget (kind, seconds, started) VALUES (?, ?, ?)",
        [(one.kind, one.seconds, now) for one in claims],
    )
    _roll(db, now)
    _charge_lost_leases(db)
    db.executemany(
        "UPDATE budget SET used = used + ? WHERE kind = ?", [(amount, kind) for kind, amount in owed.items()]
    )
    windows = standings(db, now)
    known = {(window.kind, window.seconds): window for window in windows}
    amounts: dict[str, float] = {}
    wait = 0.0
    # All windows or none: a turn that one of them refuses must not take room in the others.
    for one in claims:
        window = known[one.kind, one.seconds]
        typical = one.typical if window.typical is None else window.typical
        amounts[one.kind] = typical or 0.0
        wait = max(wait, _wait(db, one, window, typical))
    if not wait:
        db.executemany(
            "INSERT OR REPLACE INTO reserved VALUES (?, ?, ?, ?)",
            [(leased.seq, leased.lease, kind, amount) for kind, amount in amounts.items()],
        )
    return Granted(wait, windows)


def _wait(db: sqlite3.Connection, one: Claim, window: Standing, typical: float | None) -> float:
    """Seconds until a turn that uses this much may be asked for again; 0 where it may begin."""
    if one.limit - window.used - window.reserved < (typical or 1e-12):
        return max(1.0, one.seconds - window.age)
    # As long as it is not known what a turn uses, one at a time shows it.
    flying = typical is None and db.execute("SELECT 1 FROM reserved LIMIT 1").fetchone()
    return UNKNOWN_PAUSE if flying else 0.0


def bill(db: sqlite3.Connection, leased: Leased, used: Mapping[str, float] | None, *, now: float) -> None:
    """Enter what a turn has used, and learn from it what turns use."""
    mine = (leased.seq, leased.lease)
    # The lease too: a turn that was taken over is billed by its new holder.
    held = db.execute("DELETE FROM reserved WHERE seq = ? AND lease = ? RETURNING kind", mine).fetchall()
    if not held or used is None:
        return
    _roll(db, now)
    for kind, amount in used.items():
        db.execute(
            "UPDATE budget SET used = used + :amount WHERE kind = :kind", {"amount": amount, "kind": kind}
        )
        # A turn that asked nobody (out of a cache, behind a breaker) says little about the next one.
        learned = _LEARNED if used.get("requests") else "COALESCE(typical, 0)"
        db.execute(
            f"UPDATE budget SET typical = {learned} WHERE kind = :kind", {"amount": amount, "kind": kind}
        )


def standings(db: sqlite3.Connection, now: float) -> list[Standing]:
    rows = db.execute(
        "SELECT kind, seconds, started, used, typical,"
        " (SELECT COALESCE(SUM(amount), 0) FROM reserved WHERE reserved.kind = budget.kind) FROM budget"
    ).fetchall()
    return [
        Standing(kind, seconds, now - started, used, reserved, typical)
        for kind, seconds, started, used, typical, reserved in rows
    ]


def _roll(db: sqlite3.Connection, now: float) -> None:
    db.execute("UPDATE budget SET started = :now, used = 0 WHERE :now - started >= seconds", {"now": now})
    # A clock that was set back would keep the window open until it has caught up.
    db.execute("UPDATE budget SET started = :now WHERE started > :now", {"now": now})


def _charge_lost_leases(db: sqlite3.Connection) -> None:
    """What a process that died has used, nobody knows: what was set aside counts as used."""
    lost = db.execute(
        "DELETE FROM reserved WHERE NOT EXISTS (SELECT 1 FROM turns WHERE turns.seq = reserved.seq"
        " AND turns.lease = reserved.lease) RETURNING kind, amount"
    ).fetchall()
    for kind, amount in lost:
        db.execute("UPDATE budget SET used = used + ? WHERE kind = ?", (amount, kind))
