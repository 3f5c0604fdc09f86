"""The spool: turns in a SQLite file until they are judged and delivered, whoever crashes in between.

    waiting --lease--> leased --finish-------> evaluated (its result is in `results` until the sinks have it)
       ^                 |  `--dead_letter--> dead
       `--expire, release, postpone

Turns are leased for a while; whoever holds a lease renews it while at work. Only the holder can finish a
turn, so a result is written once, together with the new state, in one transaction. A turn that was leased
five times without any outcome ends the process that works on it, and is given up as dead (`poison`).

Times are the machine's monotonic clock, which processes share and no change of date moves. It starts again
with the machine: a time further ahead than it can have been set is one from before, and counts as over.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import steelyard.online._shared_budget as _shared_budget
from steelyard._internal.forks import FileConnection, transaction
from steelyard._internal.logs import SafeLogger
from steelyard.errors import DeadCause
from steelyard.online._shared_budget import Claim, Granted
from steelyard.online.queue import _spool_file
from steelyard.online.queue._protocol import DeadLetter, Decide, Parking, QueueCounts, Stored
from steelyard.online.queue._spool_file import Durability, add, connect, keep_seen
from steelyard.online.queue._turns import (
    Leased,
    Selected,
    Undelivered,
    result_to_json,
    turn_from_json,
    turn_to_json,
)
from steelyard.record import text_of
from steelyard.scores import Evaluation

_log = SafeLogger("steelyard.online")
_MAX_WAIT = 3600.0  # the clock begins anew with the machine, which must not put turns off for days
_KEPT = 100_000  # finished turns, so that one that comes again is known
# Deleting costs a scan of the finished turns, which a put should not pay each time.
_PRUNED_EVERY = 1000
_LONGEST_LEASE = "longest_lease_ms"
# Ids are the application's own and may have any length; the index holds them.
_ID = 1000
# The conversion between text and UTF-8 is SQLite's while no other thread waits for it, or it is the module's
# while all do.
_TEXT, _BYTES = "CAST(? AS TEXT)", "CAST(body AS BLOB)"


class Spool:
    """A spool file. Calls block for as long as SQLite does; used from one thread at a time.

    Args:
        path: The file; made if it is not there.
        max_bytes: Size of what may be pending; more is refused.
        lease_seconds: How long a lease of this process holds without being renewed. The file remembers the
            longest that any process has used, so that none takes over what another one still holds.
        keep: Of how many finished turns the ids are kept, to recognise a duplicate.
        max_attempts: Leases without any outcome after which a turn is given up.
        durability: `normal` survives a crash of the process, `full` also one of the machine.
        clock: Monotonic seconds.
        wall_clock: Seconds since 1970, for budgets, whose windows outlast the machine's start.

    Raises:
        sqlite3.Error: If the file cannot be used; any call may raise it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        max_bytes: int = 1024**3,
        lease_seconds: float = 60.0,
        max_attempts: int = 5,
        durability: Durability = "normal",
        busy_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        keep: int = _KEPT,
    ) -> None:
        self.path = Path(path).absolute()
        self.lease_seconds = lease_seconds
        self._max_bytes = max_bytes
        self._max_attempts = max_attempts
        self._clock = clock
        self._wall_clock = wall_clock
        self._keep = keep
        self._unpruned = 0
        opened = partial(connect, self.path, durability=durability, busy_seconds=busy_seconds)
        self._writer = FileConnection(self.path, opened)
        # Counting must not wait for a writer, which may itself wait for another process.
        self._reader = FileConnection(self.path, opened)
        with self._transaction() as db:
            mine = int(1000 * lease_seconds)
            if mine > self._total(db, _LONGEST_LEASE):
                self._set(db, _LONGEST_LEASE, mine)

    def put(self, turns: Sequence[Selected]) -> list[Stored]:
        """Put turns in, in one transaction; says for each what became of it."""
        # Before the transaction: the write lock is held for the database's work alone.
        lines = [turn_to_json(turn) for turn in turns]
        stored: list[Stored] = []
        with self._transaction() as db:
            results = self._total(db, "result_bytes")
            room = self._max_bytes - self._total(db, "bytes") - results
            for turn, line in zip(turns, lines, strict=True):
                if line is None:
                    stored.append("broken")
                    continue
                if len(line) > room:
                    stored.append("full")
                    continue
                added = db.execute(
                    f"INSERT OR IGNORE INTO turns (record_id, body, size) VALUES (?, {_TEXT}, ?)",
                    (text_of(turn.record.id)[:_ID], line, len(line)),
                ).rowcount
                stored.append("new" if added else "known")
                # A turn that is there already takes no room, hence the factor.
                room -= len(line) * added
            add(db, "accepted", count=stored.count("new"))
            self._set(db, "bytes", self._max_bytes - room - results)
            self._unpruned += stored.count("new")
            if self._unpruned >= _PRUNED_EVERY:
                self._prune(db)
        return stored

    def lease(self, most: int) -> list[Leased | Undelivered]:
        """Lease results that were left behind, and then the oldest turns that are due."""
        results = self.parked("", most)
        return [*results, *self.lease_turns(most - len(results))]

    def lease_turns(self, most: int) -> list[Leased]:
        """Lease the oldest turns that are due."""
        lease = uuid.uuid4().hex
        with self._transaction() as db:
            # Not before: what others leased while this process waited for the file would end too late for it.
            now = self._clock()
            # Expired leases first, so that what a dead process held is among what is leased now.
            self._expire(db, now)
            # Results that wait for a sink fill the file: what is judged now could not be kept.
            if self._total(db, "result_bytes") >= self._max_bytes:
                return []
            rows = db.execute(
                "UPDATE turns SET state = 'leased', lease = ?, lease_until = ?, attempts = attempts + 1"
                " WHERE seq IN (SELECT seq FROM turns WHERE state = 'waiting'"
                " AND (not_before <= ? OR not_before > ?) ORDER BY seq LIMIT ?)"
                f" RETURNING seq, {_BYTES}, attempts, postponed",
                (lease, now + self.lease_seconds, now, now + _MAX_WAIT, most),
            ).fetchall()
            # Counted before the work begins: a turn that ends its process cannot count itself.
            fit = [row for row in rows if row[2] <= self._max_attempts]
            for row in rows:
                if row not in fit:
                    self._end(db, row[0], "dead", "poison")
            return [
                Leased(seq, lease, turn, postponed)
                # RETURNING gives rows in no order, and the oldest turn is to be judged first.
                for seq, body, _, postponed in sorted(fit)
                if (turn := self._read(db, seq, body)) is not None
            ]

    def renew(self, held: Sequence[Leased | Undelivered]) -> None:
        """Hold on to leases for another while."""
        with self._transaction() as db:
            until = self._clock() + self.lease_seconds
            db.executemany(
                "UPDATE turns SET lease_until = ? WHERE seq = ? AND lease = ?",
                [(until, one.seq, one.lease) for one in held if isinstance(one, Leased)],
            )
            results = [one for one in held if isinstance(one, Undelivered)]
            _spool_file.renew_results(db, results, until=until)

    def finish(self, leased: Leased, evaluation: Evaluation) -> Undelivered | None:
        """Store a result and end its turn; None where the lease was lost, and another one's result counts."""
        body = result_to_json(evaluation)
        with self._transaction() as db:
            if not self._held(db, leased):
                return None
            self._end(db, leased.seq, "evaluated")
            until = self._clock() + self.lease_seconds
            _spool_file.store_result(db, leased, body, until=until)
        return Undelivered(leased.seq, leased.lease, evaluation)

    def moved(self, turns: Sequence[Leased]) -> None:
        """Another queue has these turns now, and accounts for them; their ids stay, to know duplicates."""
        with self._transaction() as db:
            for turn in turns:
                if self._held(db, turn):
                    self._end(db, turn.seq, "moved")
                    add(db, "accepted", count=-1)

    def dead_letter(self, leased: Leased, cause: DeadCause | str) -> bool:
        with self._transaction() as db:
            held = self._held(db, leased)
            if held:
                self._end(db, leased.seq, "dead", cause)
        return held

    def postpone(self, leased: Leased, seconds: float) -> bool:
        """Give a turn back, due later; this attempt does not count. False where the lease was lost."""
        with self._transaction() as db:
            return self._give_back(db, leased, due=self._clock() + min(seconds, _MAX_WAIT))

    def release(self, held: Sequence[Leased | Undelivered]) -> None:
        with self._transaction() as db:
            for one in held:
                if isinstance(one, Leased):
                    self._give_back(db, one)
            # All of them: a process that stops may not have heard that a turn has its result.
            _spool_file.release_results(db, held)

    def parked(self, sink: str, most: int) -> list[Undelivered]:
        """Lease the oldest results that are kept for a sink; for none: those that a process left behind."""
        with self._transaction() as db:
            now = self._clock()
            until, before = now + self.lease_seconds, now + self._longest_lease(db)
            return _spool_file.lease_results(db, sink, most, now=now, until=until, before=before)

    def park(self, results: Sequence[Parking]) -> None:
        with self._transaction() as db:
            _spool_file.park_results(db, results)

    def move(self, sink: str, to: str) -> int:
        """Have the results that wait for a sink wait for another, or drop them; returns how many."""
        with self._transaction() as db:
            return _spool_file.move_results(db, sink, to)

    def delivered(self, results: Sequence[Undelivered]) -> None:
        with self._transaction() as db:
            _spool_file.forget_delivered(db, results)

    def counts(self) -> QueueCounts:
        """The ledger now; from any thread, and without waiting for those who write.

        It is asked all the time, so it adds up totals and looks at no turn.
        """
        with self._reader.use() as db:
            # One transaction for both, or a turn that moves in between would be counted twice or not at all.
            db.execute("BEGIN")
            try:
                totals = db.execute("SELECT state, reason, count FROM totals").fetchall()
                waiting = dict(
                    db.execute("SELECT sink, COUNT(*) FROM parked WHERE sink <> '' GROUP BY sink").fetchall()
                )
            finally:
                db.execute("ROLLBACK")
        plain = {state: count for state, reason, count in totals if not reason}
        evaluated = plain.get("evaluated", 0)
        dead = {reason: count for state, reason, count in totals if state == "dead" and count > 0}
        # Never less than nothing, whatever somebody has done to the file.
        pending = max(0, plain.get("accepted", 0) - evaluated - sum(dead.values()))
        return QueueCounts(
            accepted=pending + evaluated + sum(dead.values()),
            pending=pending,
            evaluated=evaluated,
            dead=dead,
            undelivered=max(0, plain.get("undelivered", 0)),
            bytes=max(0, plain.get("bytes", 0)),
            waiting=waiting,
        )

    def dead_letters(self, decide: Decide, most: int) -> list[DeadLetter]:
        """Have somebody decide about dead turns, the oldest first; those whose text was kept."""
        letters = []
        with self._transaction() as db:
            rows = db.execute(
                "SELECT seq, record_id, IFNULL(cause, ''), attempts, size FROM turns"
                " WHERE state = 'dead' AND body IS NOT NULL ORDER BY seq LIMIT ?",
                (most,),
            ).fetchall()
            for seq, record_id, cause, attempts, size in rows:
                letters.append(DeadLetter(record_id=record_id, cause=cause, attempts=attempts))
                fate = decide(letters[-1])
                if fate == "drop":
                    db.execute("UPDATE turns SET body = NULL WHERE seq = ?", (seq,))
                elif fate == "replay":
                    db.execute(
                        "UPDATE turns SET state = 'waiting', cause = NULL, attempts = 0, postponed = 0,"
                        " not_before = 0 WHERE seq = ?",
                        (seq,),
                    )
                    add(db, "dead", cause, count=-1)
                    add(db, "bytes", count=size)
        return letters

    def prune(self) -> None:
        """Forget the ids of all but the latest finished turns; `put` does it every 1,000 turns."""
        with self._transaction() as db:
            self._prune(db)

    def claim(self, leased: Leased, claims: Sequence[Claim], owed: Mapping[str, float]) -> Granted:
        """Set aside what a leased turn uses of a budget that all processes on the file share."""
        with self._transaction() as db:
            return _shared_budget.claim(db, leased, claims, owed, now=self._wall_clock())

    def bill(self, leased: Leased, used: Mapping[str, float] | None) -> None:
        """Enter what a turn has used; None where it was not judged."""
        with self._transaction() as db:
            _shared_budget.bill(db, leased, used, now=self._wall_clock())

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._writer.use() as opened, transaction(opened) as db:
            yield db

    def _prune(self, db: sqlite3.Connection) -> None:
        self._unpruned = 0
        db.execute(
            "DELETE FROM turns WHERE state IN ('evaluated', 'dead', 'moved')"
            # By number rather than by time: the clock may be set, numbers only grow.
            " AND seq <= (SELECT COALESCE(MAX(seq), 0) FROM turns) - ?",
            (self._keep,),
        )

    def _expire(self, db: sqlite3.Connection, now: float) -> None:
        db.execute(
            "UPDATE turns SET state = 'waiting', lease = NULL"
            " WHERE state = 'leased' AND (lease_until <= ? OR lease_until > ?)",
            (now, now + self._longest_lease(db)),
        )

    def _longest_lease(self, db: sqlite3.Connection) -> float:
        """Seconds; what ends later than that from now was leased before the machine was started."""
        return self._total(db, _LONGEST_LEASE) / 1000 + 1

    def _read(self, db: sqlite3.Connection, seq: int, body: bytes) -> Selected | None:
        """A turn's body; one that cannot be read is dead."""
        try:
            return turn_from_json(body)
        except Exception:  # noqa: BLE001 - RecursionError, AttributeError: a row may hold anything
            self._end(db, seq, "dead", "unreadable")
            return None

    def _give_back(self, db: sqlite3.Connection, leased: Leased, *, due: float | None = None) -> bool:
        changed = db.execute(
            # The attempt is taken back, since a judge that is away is not the turn's fault.
            "UPDATE turns SET state = 'waiting', lease = NULL, attempts = attempts - 1,"
            " postponed = postponed + ?, not_before = IFNULL(?, not_before)"
            " WHERE seq = ? AND state = 'leased' AND lease = ?",
            (due is not None, due, leased.seq, leased.lease),
        ).rowcount
        if changed and leased.turn.seen is not None:
            keep_seen(db, leased, max_bytes=self._max_bytes)
        return changed == 1

    def _held(self, db: sqlite3.Connection, leased: Leased) -> bool:
        row = db.execute(
            "SELECT 1 FROM turns WHERE seq = ? AND state = 'leased' AND lease = ?", (leased.seq, leased.lease)
        ).fetchone()
        return row is not None

    def _end(self, db: sqlite3.Connection, seq: int, state: str, reason: str = "") -> None:
        (size,) = db.execute("SELECT size FROM turns WHERE seq = ?", (seq,)).fetchone()
        # The text goes with the end of a turn; its id stays, to recognise a duplicate. That of a dead one
        # stays until somebody decides about it, within a tenth of the bound.
        keeps = state == "dead" and self._dead_bytes(db) + size <= self._max_bytes / 10
        db.execute(
            "UPDATE turns SET state = ?, lease = NULL, cause = ?, body = CASE WHEN ? THEN body END"
            " WHERE seq = ?",
            (state, reason or None, keeps, seq),
        )
        add(db, state, reason)
        add(db, "bytes", count=-size)

    def _dead_bytes(self, db: sqlite3.Connection) -> int:
        found: Any = db.execute(
            "SELECT IFNULL(SUM(size), 0) FROM turns WHERE state = 'dead' AND body IS NOT NULL"
        ).fetchone()
        return int(found[0])

    def _total(self, db: sqlite3.Connection, state: str) -> int:
        row: Any = db.execute("SELECT count FROM totals WHERE state = ? AND reason = ''", (state,)).fetchone()
        return int(row[0]) if row else 0

    def _set(self, db: sqlite3.Connection, state: str, count: int) -> None:
        db.execute("INSERT OR REPLACE INTO totals VALUES (?, '', ?)", (state, count))
