"""What was asked before is not asked again."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from steelyard._internal.forks import FileConnection
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard.errors import ConfigurationError
from steelyard.judge.middleware._failures import Wrapper
from steelyard.questions import Answer, Judge, Question, Reply, Request, Unanswered, View, check

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_MEMORY = ":memory:"
_TABLE = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, body TEXT, used REAL) WITHOUT ROWID"

_log = SafeLogger("steelyard.judge")


class Cache(Wrapper):
    """Keeps answers by a hash of judge, wording, material and questions; a duplicate record is judged once.

    Requests that are alike and on their way at the same time wait for the first of them. Only replies in
    which every question is answered, and well, are kept. A reply from the cache costs nothing, and its usage
    says so. Judges of one name that are set up differently (another server, another temperature) need files
    of their own.

    Args:
        judge: The judge. The cache goes outside of everything else.
        path: A SQLite file that outlives the process and may be shared by several; None for memory. It holds
            the judge's reasons and extracted claims, so it deserves the same care as the records themselves.
        entries: Replies to keep; those not used for longest go first.
    """

    def __init__(self, judge: Judge, *, path: str | Path | None = None, entries: int = 10_000) -> None:
        super().__init__(judge)
        if entries < 1:
            raise ConfigurationError(f"entries must be at least 1, not {entries!r}")
        self._store = _Replies(None if path is None else Path(path), entries)
        # Weak, so that a lock goes with the last request that waits for it.
        self._locks: WeakValueDictionary[tuple[int, bytes], asyncio.Lock] = WeakValueDictionary()
        self.hits = 0
        self.misses = 0

    async def answer(self, request: Request) -> Reply:
        """The kept reply, or a new one."""
        key = _key_of(self.judge, request)
        # By loop as well: a lock of asyncio may not be waited for in another one.
        lock = self._locks.setdefault((id(asyncio.get_running_loop()), key), asyncio.Lock())
        async with lock:
            # Looked for within the lock: whoever waited finds what the first one stored.
            if (kept := _load(request, self._store.get(key))) is not None:
                self.hits += 1
                return Reply(answers=kept)
            self.misses += 1
            reply = await self.judge.answer(request)
            # A reply with gaps would keep them for ever.
            if (good := _good(request, reply.answers)) is not None:
                self._store.put(key, _dump(request, good))
            return reply

    async def aclose(self) -> None:
        """Close the judge and the file; both open again if they are used again."""
        self._store.close()
        await self.judge.aclose()


def uncached(judge: Judge) -> Judge:
    """The same judge without its caches, for questions whose point is that they are asked anew.

    What is inside a cache is shared with the judge given; what is around it is a copy.
    """
    if not isinstance(judge, Wrapper):
        return judge
    inner = uncached(judge.judge)
    if isinstance(judge, Cache):
        return inner
    if inner is judge.judge:
        return judge
    outer = copy.copy(judge)
    outer.judge = inner
    return outer


class _Replies:
    """The most recently used, in SQLite. A file that does not work never has a reply; one warning says so."""

    def __init__(self, path: Path | None, entries: int) -> None:
        self._path = path
        self._entries = entries
        self._file = FileConnection(_MEMORY if path is None else path, self._open)
        self._puts = 0
        self._warn = WarnOnce(_log)

    def get(self, key: bytes) -> str | None:
        try:
            with self._file.use() as connection:
                row = connection.execute("SELECT body FROM replies WHERE key = ?", (key,)).fetchone()
                if row is None:
                    return None
                connection.execute("UPDATE replies SET used = ? WHERE key = ?", (time.time(), key))
                return str(row[0])
        except (sqlite3.Error, OSError) as error:
            self._complain(error)
            return None

    def put(self, key: bytes, text: str) -> None:
        try:
            with self._file.use() as connection:
                connection.execute(
                    "INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (key, text, time.time())
                )
                self._puts += 1
                # Now and then: deleting looks through the index of all replies.
                if self._puts % 64 == 0:
                    self._prune(connection)
        except (sqlite3.Error, OSError) as error:
            self._complain(error)

    def _prune(self, connection: sqlite3.Connection) -> None:
        kept = "SELECT key FROM replies ORDER BY used DESC LIMIT ?"
        connection.execute(f"DELETE FROM replies WHERE key NOT IN ({kept})", (self._entries,))

    def _open(self) -> sqlite3.Connection:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
        # A second at most: a cache that is waited for longer than that is slower than the judge.
        connection = sqlite3.connect(
            self._file.path, isolation_level=None, check_same_thread=False, timeout=1.0
        )
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(_TABLE)
        connection.execute("CREATE INDEX IF NOT EXISTS replies_used ON replies (used)")
        return connection

    def _complain(self, error: Exception) -> None:
        message = "judge cache %s does not work (%s); everything is asked anew"
        self._warn("broken", message, self._path, error)

    def close(self) -> None:
        """Close the file; what is in memory stays."""
        if self._file.is_open:
            with self._file.use() as connection:
                self._prune(connection)
            if self._path is not None:
                self._file.close()


_KEYS = 3
"""Version of keys and bodies; what was stored under another one is not found again."""


def _key_of(judge: Judge, request: Request) -> bytes:
    """A hash of everything that decides the answers: judge, wording, what is in view, and the questions."""
    parts = [
        _KEYS,
        judge.name,
        judge.prompt_version,
        _view(request.view),
        [[key, question.kind, _fields(question)] for key, question in request.questions.items()],
        # A second try is asked for because the first came to nothing; it must not be given the first again.
        *([request.attempt] if request.attempt > 1 else []),
        # What one tenant's turn cost is not to be seen from another's.
        *([["tenant", request.tenant]] if request.tenant is not None else []),
    ]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=20).digest()


def _view(view: View) -> list[Any]:
    passages = [
        None if contexts is None else [context.text for context in contexts]
        for contexts in (view.contexts, view.reference_contexts)
    ]
    return [view.question, view.answer, view.reference, *passages]


def _fields(question: Question) -> list[Any]:
    values = (getattr(question, field.name) for field in fields(question))
    return [sorted(value) if isinstance(value, frozenset) else value for value in values]


def _good(request: Request, answers: Mapping[str, Any]) -> dict[str, Answer] | None:
    """The answers, if every question has one that fits it: nothing else is worth keeping."""
    checked = {key: check(question, answers.get(key)) for key, question in request.questions.items()}
    return None if any(isinstance(answer, Unanswered) for answer in checked.values()) else checked


@cache
def _form(form: type[Answer]) -> TypeAdapter[Answer]:
    from pydantic import TypeAdapter  # a twentieth of a second, and only where there is a cache

    return TypeAdapter(form)


def _dump(request: Request, answers: Mapping[str, Answer]) -> str:
    return json.dumps(
        {
            key: _form(question.form).dump_python(answers[key], mode="json")
            for key, question in request.questions.items()
        }
    )


def _load(request: Request, text: str | None) -> dict[str, Answer] | None:
    """Kept answers; None for what is not some, or does not fit the questions."""
    try:
        kept = json.loads(text or "")
        found = {
            key: _form(question.form).validate_python(kept[key])
            for key, question in request.questions.items()
        }
    except (KeyError, TypeError, ValueError):
        return None
    return _good(request, found)
