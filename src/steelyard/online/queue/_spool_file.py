"""The spool's settings, its file, the tables in it, and results there until every sink has them.

`results` has each once; `parked` says for which sinks one is kept, and who holds it for them. One that its
judge holds for all sinks at once is kept for the sink of no name. A result is deleted with the last sink that
waits for it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, get_args

import steelyard.online._shared_budget as _shared_budget
from steelyard._internal.forks import transaction
from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError
from steelyard.online.queue._protocol import Parking
from steelyard.online.queue._turns import Leased, Undelivered, turn_to_json
from steelyard.online.queue.broker._broker import BrokerAddress, is_address
from steelyard.scores import evaluation_from_json

Durability = Literal["normal", "full"]
"""SQLite's `synchronous`: `normal` survives a crash of the process, `full` also one of the machine."""
_TABLES = """
CREATE TABLE IF NOT EXISTS turns (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    record_id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL DEFAULT 'waiting',
    body TEXT,
    size INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    postponed INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0,
    lease TEXT,
    lease_until REAL,
    cause TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS turns_by_state ON turns (state, seq);
CREATE TABLE IF NOT EXISTS results (
    seq INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS parked (
    sink TEXT NOT NULL,
    seq INTEGER NOT NULL,
    lease TEXT,
    lease_until REAL NOT NULL,
    PRIMARY KEY (sink, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS parked_by_result ON parked (seq);
CREATE TABLE IF NOT EXISTS totals (
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    count INTEGER NOT NULL,
    PRIMARY KEY (state, reason)
) STRICT;
INSERT OR IGNORE INTO totals SELECT 'undelivered', '', COUNT(*) FROM results;
INSERT OR IGNORE INTO totals SELECT 'result_bytes', '', IFNULL(SUM(LENGTH(CAST(body AS BLOB))), 0)
    FROM results
    WHERE NOT EXISTS (SELECT 1 FROM totals WHERE state = 'result_bytes');
"""
APPLICATION_ID: Final = 0x53744C71
"""In the header of every spool file since schema 3."""
VERSION: Final = 4
_OLD_COLUMNS: Final = {"seq", "record_id", "state", "body", "lease_until"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SpoolSettings:
    """Where picked turns are kept until they are judged and delivered: a file, or a queue on a broker."""

    path: str | Path = field(repr=False)
    """The file, made if it is not there; or a broker's address: `nats://HOST:PORT` or `amqp://HOST:PORT`."""
    max_bytes: int = 1024**3
    """Size of what may be pending in it; more is skipped as `spool_full`. On a broker it counts where the
    stream or queue is created; one that is there keeps its own."""
    durability: Durability = "normal"
    """For a file: `normal` survives a crash of the process, `full` also one of the machine."""
    lease_seconds: float = 60.0
    """Seconds after which a turn is taken over whose process has died. NATS keeps what its consumer was
    created with; RabbitMQ gives turns back as soon as a connection ends."""
    evaluate: bool = True
    """Whether this process judges what is in it; False leaves that to `steelyard worker`."""
    fallback: str | Path | None = field(default=None, repr=False)
    """Beside a broker: a file that takes turns while the broker cannot be used, and gives them to the broker
    afterwards. Without one a process that judges goes on through memory, where results of a sink that is away
    as well are lost."""
    address: BrokerAddress | None = field(init=False, repr=False, compare=False, default=None)
    """The broker's address, taken apart; None for a file."""
    shown: str = field(init=False, compare=False, default="")
    """The path or address as it may be shown: without user, password and options."""
    beside: SpoolSettings | None = field(init=False, repr=False, compare=False, default=None)
    """How the fallback is used."""

    def __post_init__(self) -> None:
        if self.durability not in get_args(Durability):
            raise ConfigurationError(f"durability must be 'normal' or 'full', not {self.durability!r}")
        if not self.max_bytes > 0 or not self.lease_seconds > 0:
            raise ConfigurationError("max_bytes and lease_seconds of a spool must be more than 0")
        if isinstance(self.path, str) and is_address(self.path):
            self._check_address(self.path)
        else:
            self._check_file()
        self._check_fallback()

    def _check_fallback(self) -> None:
        if self.fallback is None:
            return
        if self.address is None:
            raise ConfigurationError("fallback is for a broker's address; a file needs none")
        beside = SpoolSettings(
            path=self.fallback, max_bytes=self.max_bytes, lease_seconds=self.lease_seconds, evaluate=False
        )
        if beside.address is not None:
            raise ConfigurationError("fallback must be a file, not another broker's address")
        object.__setattr__(self, "beside", beside)

    def _check_address(self, path: str) -> None:
        address = BrokerAddress.of(path)
        object.__setattr__(self, "address", address)
        object.__setattr__(self, "shown", address.shown)
        if self.durability != "normal":
            raise ConfigurationError(
                "durability is for a spool file; how a broker stores is its own setting; leave it out"
            )

    def _check_file(self) -> None:
        # The process may change its folder before the first turn.
        object.__setattr__(self, "path", Path(self.path).absolute())
        object.__setattr__(self, "shown", str(self.path))
        folder = Path(self.path).parent
        if not folder.is_dir():
            raise ConfigurationError(f"the spool's folder {str(folder)!r} does not exist; create it first")
        if os.path.lexists(self.path):
            try:
                check(Path(self.path))
            except OSError as error:
                raise ConfigurationError(
                    f"the spool {str(self.path)!r} cannot be read: {error_words(error)}; "
                    "check its name and rights"
                ) from None


def connect(path: Path, *, durability: Durability, busy_seconds: float) -> sqlite3.Connection:
    """Open a spool file, readable by its owner only, and create what is not there."""
    claim(path)
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {durability.upper()}")
        connection.execute("PRAGMA secure_delete = ON")
        connection.executescript(_TABLES + _shared_budget.TABLES)
        _bring_up_to_date(connection)
        for name, value in (("application_id", APPLICATION_ID), ("user_version", VERSION)):
            # Only once: setting it waits for whoever writes, each time that a file is opened again.
            if connection.execute(f"PRAGMA {name}").fetchone() != (value,):
                connection.execute(f"PRAGMA {name} = {value}")
    except BaseException:
        connection.close()
        raise
    return connection


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Files of earlier versions do not know what turns died of, and hold leases beside results."""
    if not _has_column(connection, "turns", "cause"):
        # Another process may be quicker.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("ALTER TABLE turns ADD COLUMN cause TEXT")
    if _has_column(connection, "results", "lease_until"):
        with transaction(connection) as db:
            db.execute(
                "INSERT OR IGNORE INTO parked SELECT '', seq, lease, lease_until FROM results"
                " WHERE lease_until IS NOT NULL"
            )
            db.execute("UPDATE results SET lease_until = NULL WHERE lease_until IS NOT NULL")


def _has_column(connection: sqlite3.Connection, table: str, column: str) -> bool:
    return column in {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}


def add(db: sqlite3.Connection, state: str, reason: str = "", *, count: int = 1) -> None:
    db.execute(
        "INSERT INTO totals VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
        (state, reason, count),
    )


def keep_seen(db: sqlite3.Connection, leased: Leased, *, max_bytes: int) -> None:
    """Store what the screen said of a turn with it, where that fits into the file's bound."""
    body = turn_to_json(leased.turn)
    (size,) = db.execute("SELECT size FROM turns WHERE seq = ?", (leased.seq,)).fetchone()
    (pending,) = db.execute(
        "SELECT SUM(count) FROM totals WHERE state IN ('bytes', 'result_bytes')"
    ).fetchone()
    if body is not None and pending + len(body) - size <= max_bytes:
        row = (body, len(body), leased.seq)
        db.execute("UPDATE turns SET body = CAST(? AS TEXT), size = ? WHERE seq = ?", row)
        add(db, "bytes", count=len(body) - size)


def claim(path: Path) -> None:
    """Make the file, private, where there is none; make ours private; refuse what is not ours."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        check(path)
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.chmod(f"{path}{suffix}", 0o600)


def check(path: Path) -> None:
    """Refuse a file that is not a spool, an empty one apart; it is only read.

    A spool of ours that is damaged is not refused here: SQLite says so when it is opened.
    """
    if path.is_symlink() or not stat.S_ISREG(path.stat().st_mode):
        raise ConfigurationError(f"the spool {str(path)!r} is not a file of its own; give another path")
    if not path.stat().st_size:
        return
    try:
        # Through SQLite only: to open and close the file besides it would drop this process's locks on it.
        address = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as connection:
            # The identity comes last: it is written together with the tables, maybe just now.
            tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(turns)")}
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (identity,) = connection.execute("PRAGMA application_id").fetchone()
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB:
            raise _foreign(path) from None
        return
    if identity == APPLICATION_ID:
        if version > VERSION:
            raise ConfigurationError(
                f"the spool {str(path)!r} is of schema {version}, newer than {VERSION}; update steelyard"
            )
        return
    if identity or version not in (0, 1, 2) or (tables and not columns >= _OLD_COLUMNS):
        raise _foreign(path)


def _foreign(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{str(path)!r} is a file of another program; it is left alone, give the spool another path"
    )


_log = SafeLogger("steelyard.online")


def store_result(db: sqlite3.Connection, leased: Leased, body: bytes, *, until: float) -> None:
    """Store the result of a turn, leased to whoever has judged it."""
    db.execute("INSERT INTO results (seq, body) VALUES (?, CAST(? AS TEXT))", (leased.seq, body))
    db.execute("INSERT INTO parked VALUES ('', ?, ?, ?)", (leased.seq, leased.lease, until))
    add(db, "undelivered")
    add(db, "result_bytes", count=len(body))


def lease_results(
    db: sqlite3.Connection, sink: str, most: int, *, now: float, until: float, before: float
) -> list[Undelivered]:
    """Lease the oldest results for a sink that nobody holds: those whose lease ended by `now`, or was made
    before the machine was started, since it ends after `before`.
    """  # noqa: D205 - one sentence
    # Looked for first: most of the time there is none, and nothing is written then.
    found = db.execute(
        "SELECT seq FROM parked WHERE sink = ? AND (lease_until <= ? OR lease_until > ?)"
        " ORDER BY seq LIMIT ?",
        (sink, now, before, most),
    ).fetchall()
    name, results = uuid.uuid4().hex, []
    for (seq,) in found:
        db.execute(
            "UPDATE parked SET lease = ?, lease_until = ? WHERE sink = ? AND seq = ?",
            (name, until, sink, seq),
        )
        row = db.execute("SELECT CAST(body AS BLOB) FROM results WHERE seq = ?", (seq,)).fetchone()
        try:
            results.append(Undelivered(seq, name, evaluation_from_json(row[0]), sink))
        except Exception:  # noqa: BLE001 - a row may hold anything
            # The turn counts as evaluated; its result is lost, and nothing waits for it.
            db.execute("DELETE FROM parked WHERE seq = ?", (seq,))
            _forget(db, seq)
            _log.error("a stored result (seq %d) cannot be read; it is not delivered", seq)
    return results


def renew_results(db: sqlite3.Connection, results: Sequence[Leased | Undelivered], *, until: float) -> None:
    db.executemany(
        "UPDATE parked SET lease_until = ? WHERE sink = ? AND seq = ? AND lease = ?",
        [(until, getattr(one, "sink", ""), one.seq, one.lease) for one in results],
    )


def release_results(db: sqlite3.Connection, results: Sequence[Leased | Undelivered]) -> None:
    """Give up leases; whoever comes next delivers these results."""
    renew_results(db, results, until=0)


def park_results(db: sqlite3.Connection, results: Sequence[Parking]) -> None:
    """Keep results for the sinks that do not have them, and give up their leases."""
    for result, sinks in results:
        if result.sink:
            release_results(db, [result])
        elif _end(db, result):
            db.executemany(
                "INSERT OR IGNORE INTO parked VALUES (?, ?, NULL, 0)", [(sink, result.seq) for sink in sinks]
            )
            _forget(db, result.seq)


def forget_delivered(db: sqlite3.Connection, results: Sequence[Undelivered]) -> None:
    for result in results:
        if _end(db, result):
            _forget(db, result.seq)


def move_results(db: sqlite3.Connection, sink: str, to: str) -> int:
    seqs = db.execute("DELETE FROM parked WHERE sink = ? RETURNING seq", (sink,)).fetchall()
    for (seq,) in seqs:
        if to:
            db.execute("INSERT OR IGNORE INTO parked VALUES (?, ?, NULL, 0)", (to, seq))
        _forget(db, seq)
    return len(seqs)


def _end(db: sqlite3.Connection, result: Undelivered) -> bool:
    """Its sink waits for a result no more; False where the lease was lost."""
    held = (result.sink, result.seq, result.lease)
    return db.execute("DELETE FROM parked WHERE sink = ? AND seq = ? AND lease = ?", held).rowcount == 1


def _forget(db: sqlite3.Connection, seq: int) -> None:
    """Delete a result that no sink waits for any more."""
    size = db.execute(
        "DELETE FROM results WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM parked WHERE seq = results.seq)"
        " RETURNING LENGTH(CAST(body AS BLOB))",
        (seq,),
    ).fetchone()
    if size is not None:
        add(db, "undelivered", count=-1)
        add(db, "result_bytes", count=-size[0])
