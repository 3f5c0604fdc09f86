"""Locks and SQLite files that come through a fork, at whatever moment it happens.

A forked child has one thread and a copy of everything else: a lock that another thread held is held in the
child for ever, and so are the locks on SQLite files, which SQLite keeps in a table of the process, by file. A
connection that the child opens to such a file goes by the parent's entries in that table. Therefore a fork
waits until no thread is within such a lock, or in an import of ours, and finds no file of ours open.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from types import FrameType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakMethod, WeakValueDictionary

from steelyard._internal.logs import SafeLogger
from steelyard._internal.native import Lock, RLock, get_ident
from steelyard._internal.text import error_place

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Write alone, and all or nothing: what ends with an error, whatever error, has written nothing.

    Raises:
        sqlite3.Error: If the file is locked by others for too long, or cannot be written.
    """
    # At once: a transaction that reads first and writes then may find that others have written meanwhile,
    # and fail however long it waits.
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled some errors back itself, a full disk among them.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def identity_of(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Which file stands at a path now; None where there is none.

    A file that is removed or replaced while it is open can still be written, and nobody ever reads that.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _alone_in(folder: str) -> Iterator[bool]:
    """While nobody else, in this process or another, makes a file of ours in a folder; False if unsure."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # on Windows folders cannot be opened, and open files cannot be moved
        yield False
        return
    try:
        yield _locked(descriptor)
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    if fcntl is None:
        return False
    until = time.monotonic() + _LONGEST_MAKING
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        except OSError:  # not on this file system
            return False
        else:
            return True


_log = SafeLogger("steelyard")
_LONGEST_MAKING: Final = 5.0
"""Seconds that a file which others make is waited for."""
_PATIENCE: Final = 30.0
"""Seconds that all locks and imports together may hold up a fork. A first write takes long on a
busy machine, and the child of a fork that did not wait can never use that file, or that module."""
_BRIEFLY: Final = 0.05
"""Seconds that a fork which holds some of the locks waits for another one."""
_locks: WeakValueDictionary[int, ForkLock] = WeakValueDictionary()
_module_locks: dict[str, Callable[[], Any]] = getattr(
    sys.modules.get("_frozen_importlib"), "_module_locks", {}
)
_held: list[ForkLock] = []
"""Acquired for the fork that is under way."""
_forking = RLock()
"""Two threads that fork at the same time would wait for each other's locks."""
_inherited: list[sqlite3.Connection] = []
"""Connections that were in use by a thread of the parent: SQLite forbids even closing them here."""
_lost: set[tuple[int, int] | None] = set()
"""Their files, which this process cannot use any more."""
_in_children: list[Callable[[], Callable[[], object] | None]] = []
"""References to what is called in a child, once locks are free."""


def in_children(function: Callable[[], object]) -> None:
    """Have a function called in every forked child, where the locks are free; a method is held weakly."""
    # Few methods come, and an application may make processors all its life.
    _in_children[:] = [reference for reference in _in_children if reference() is not None]
    _in_children.append(WeakMethod(function) if hasattr(function, "__self__") else lambda: function)


class ForkLock:
    """A lock that no fork leaves held: the child's is free, and what it guards is whole."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.acquire, self.release, self.locked = self._lock.acquire, self._lock.release, self._lock.locked
        _locks[id(self)] = self

    if TYPE_CHECKING:

        def __enter__(self) -> bool: ...

        def __exit__(self, *_: object) -> None: ...

    else:
        # Those of the lock itself: an exception out of a signal that came within a function of ours, after
        # the lock was acquired and before `with` knows of it, would leave it held for ever.
        __enter__ = property(attrgetter("_lock.__enter__"))
        __exit__ = property(attrgetter("_lock.__exit__"))

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
        self._wal: tuple[int, int] | None = None
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
                self._connection = self._connected()
                self._file, self._wal = identity_of(self.path), identity_of(self.path + "-wal")
            if self._connection.in_transaction:
                # An exception out of a signal came between the beginning and whatever would have ended it.
                self._connection.rollback()
            yield self._connection

    @property
    def is_open(self) -> bool:
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
        moved = self.moved
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                try:
                    if moved:
                        self._take_wal_along(connection)
                finally:
                    connection.close()

    def _take_wal_along(self, connection: sqlite3.Connection) -> None:
        """Write into a file that was moved what it has in the `-wal` file, which stayed at the path.

        SQLite itself deletes that one with whatever is in it, or reads it into the next file of the name.
        """
        _, pages, written = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        # Other processes have done so already, if the path has a log of another file by now.
        if pages == written and identity_of(self.path + "-wal") == self._wal:
            self._remove_wal()

    def _connected(self) -> sqlite3.Connection:
        """The file, opened; where it is yet to be made, without the log of one that was moved from its place.

        Others may still write that one. A file that another process makes at this moment has a log, too.
        """
        if not self._is_new:
            return self._connect()
        with _alone_in(os.path.dirname(os.path.abspath(self.path))) as alone:
            if alone and self._is_new:
                self._remove_wal()
            return self._connect()

    @property
    def _is_new(self) -> bool:
        try:
            return self.path != ":memory:" and os.path.getsize(self.path) == 0
        except OSError as error:
            return isinstance(error, FileNotFoundError)

    def _remove_wal(self) -> None:
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.unlink(self.path + suffix)


def _alive() -> list[ForkLock]:
    # References are listed in one step: other threads make locks meanwhile.
    return [lock for reference in _locks.valuerefs() if (lock := reference()) is not None]


def _importing() -> bool:
    """Whether another thread imports a module for code of ours: the child could never import it.

    Python frees its own lock on imports in a child, and not those on single modules.
    """
    locks = (reference() for reference in list(_module_locks.values()))
    owners = {getattr(lock, "owner", None) for lock in locks} - {get_ident()}
    return any(is_ours(frame) for thread, frame in sys._current_frames().items() if thread in owners)


def is_ours(frame: FrameType | None) -> bool:
    """Whether code of this package is being executed in a frame, or waits for it."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("steelyard"):
            return True
        frame = frame.f_back
    return False


def _hold_all(missed: ForkLock | None, deadline: float) -> ForkLock | None:
    """Acquire the locks that can be had, first the one that was missed; returns one to be waited for.

    It is waited for with no other lock held, since the thread that holds it may want one of those.
    """
    if missed is not None and missed.acquire(timeout=max(0.0, deadline - time.monotonic())):
        _held.append(missed)
    for lock in _alive():
        if lock is missed:
            continue
        if lock.acquire(timeout=_BRIEFLY):
            _held.append(lock)
        elif time.monotonic() < deadline:
            return lock
    return None


def _let_go() -> None:
    while _held:
        _held.pop().release()


def _before_fork() -> None:
    _forking.acquire()
    deadline = time.monotonic() + _PATIENCE
    missed: ForkLock | None = None
    while (missed := _hold_all(missed, deadline)) is not None:
        _let_go()
    for lock in _held:
        lock.before_fork()
    # Last, since a thread may begin to import while a lock is waited for.
    while _importing() and time.monotonic() < deadline:
        time.sleep(0.005)


def _in_parent() -> None:
    _let_go()
    _forking.release()


def _in_child() -> None:
    global _forking
    held = set(map(id, _held))
    _held.clear()
    _forking = RLock()
    for lock in _alive():
        lock.in_child(whole=id(lock) in held or not lock.locked())
    for reference in tuple(_in_children):
        if (function := reference()) is not None:
            try:
                function()
            except Exception as error:  # noqa: BLE001 - the others begin anew all the same
                _log.warning("a part could not begin anew in a forked child: %s", error_place(error))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
