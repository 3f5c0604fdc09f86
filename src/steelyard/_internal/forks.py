"""Locks and SQLite files that come through a fork, at whatever moment it happens.

A forked child has one thread and a copy of everything else: a lock that another thread held is held in the
child for ever, and so are the locks on SQLite files, which SQLite keeps in a table of the process, by file. A
connection that the child opens to such a file goes by the parent's entries in that table. Therefore a fork
waits until none of our threads is within such a lock or an import, and finds no file of ours open.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakValueDictionary

from steelyard._internal.sqlite import identity_of

_PATIENCE: Final = 5.0
"""Seconds that all locks together may hold up a fork: as long as SQLite waits for a locked file."""
_locks: WeakValueDictionary[int, ForkLock] = WeakValueDictionary()
_module_locks: dict[str, Callable[[], Any]] = getattr(
    sys.modules.get("_frozen_importlib"), "_module_locks", {}
)
_held: list[ForkLock] = []
"""Acquired for the fork that is under way."""
_forking = threading.RLock()
"""Two threads that fork at the same time would wait for each other's locks."""
_inherited: list[sqlite3.Connection] = []
"""Connections that were in use by a thread of the parent: SQLite forbids even closing them here."""
_lost: set[tuple[int, int] | None] = set()
"""Their files, which this process cannot use any more."""


class ForkLock:
    """A lock that no fork leaves held: the child's is free, and what it guards is whole."""

    def __init__(self) -> None:
        """It is free."""
        self._lock = threading.Lock()
        self.acquire, self.release, self.locked = self._lock.acquire, self._lock.release, self._lock.locked
        _locks[id(self)] = self

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def before_fork(self) -> None:
        """Called in the parent, with the lock held."""

    def in_child(self, *, whole: bool) -> None:
        """Called in the child. Not `whole`: a thread that is not here any more was within the lock."""
        # Not released: a lock that a thread of the parent holds has no owner here.
        self._lock._at_fork_reinit()  # type: ignore[attr-defined]


class FileConnection(ForkLock):
    """A connection to a SQLite file, opened when it is needed and closed over a fork.

    Args:
        path: The file.
        connect: Opens it.
    """

    def __init__(self, path: str | os.PathLike[str], connect: Callable[[], sqlite3.Connection]) -> None:
        self.path = os.fspath(path)
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._pid = os.getpid()
        super().__init__()

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone until the block ends.

        Raises:
            sqlite3.OperationalError: If a thread of the parent was writing when this process was forked, and
                could not be waited for: SQLite's locks on the file cannot be told apart here any more.
        """
        self._notice_fork()
        with self:
            if _lost and identity_of(self.path) in _lost:
                raise sqlite3.OperationalError(f"{self.path!r} was in use when this process was forked")
            if self._connection is None:
                self._connection = self._connect()
                self._file = identity_of(self.path)
            yield self._connection

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    @property
    def moved(self) -> bool:
        """Whether the file was removed or replaced since it was opened."""
        return self._connection is not None and identity_of(self.path) != self._file

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        self._notice_fork()
        with self:
            self._close()

    def before_fork(self) -> None:
        # What is in memory would be gone.
        if self.path != ":memory:":
            self._close()

    def in_child(self, *, whole: bool) -> None:
        self._pid = os.getpid()
        if whole:
            # Open only after a fork that told nobody; outside of a transaction it may be closed here.
            self.before_fork()
        elif self._connection is not None:
            _inherited.append(self._connection)
            _lost.add(self._file)
            self._connection = None
        super().in_child(whole=whole)

    def _notice_fork(self) -> None:
        """A library in C may fork without telling Python."""
        if self._pid != os.getpid():
            self.in_child(whole=not self.locked())

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()


def _alive() -> list[ForkLock]:
    # References are listed in one step: other threads make locks meanwhile.
    return [lock for reference in _locks.valuerefs() if (lock := reference()) is not None]


def _importing() -> bool:
    """Whether a thread of ours imports a module: the child could never import it.

    Python frees its own lock on imports in a child, and not those on single modules.
    """
    owners = {
        owner for reference in list(_module_locks.values()) if (owner := _owner(reference())) is not None
    }
    return bool(owners) and any(
        thread.ident in owners and thread.name.startswith("steelyard") for thread in threading.enumerate()
    )


def _owner(lock: Any) -> int | None:
    owner = getattr(lock, "owner", None)
    return owner if owner != threading.get_ident() else None


def _before_fork() -> None:
    _forking.acquire()
    deadline = time.monotonic() + _PATIENCE
    for lock in _alive():
        if lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            _held.append(lock)
            lock.before_fork()
    # Last, since a thread may begin to import while a lock is waited for.
    while _importing() and time.monotonic() < deadline:
        time.sleep(0.005)


def _in_parent() -> None:
    while _held:
        _held.pop().release()
    _forking.release()


def _in_child() -> None:
    global _forking
    held = set(map(id, _held))
    _held.clear()
    _forking = threading.RLock()
    for lock in _alive():
        lock.in_child(whole=id(lock) in held or not lock.locked())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
