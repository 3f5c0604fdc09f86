"""The queue between the host's threads and the worker: bounded, and woken at most once per busy period."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from steelyard.record import Context, Draft, Record

__all__ = ["Intake", "Submitted", "size_of"]

_OVERHEAD = 500
_SAMPLED_CONTEXTS = 50


@dataclass(slots=True)
class Submitted:
    """A turn on its way to the worker."""

    turn: Record | Draft
    place: float
    """Its place in [0, 1), from the hash that decides sampling."""
    size: int
    """Roughly how many bytes it keeps alive."""


class Intake:
    """A first-in first-out queue that refuses what does not fit; the newest is dropped, never an older one.

    While turns keep coming the worker looks in by itself every few milliseconds, so `put` is an append.
    Waking a sleeping event loop costs a system call and, under load, a wait for the interpreter lock: that is
    paid only by the first turn after the worker has said that it goes to sleep.
    """

    def __init__(self, *, max_items: int, max_bytes: int, wake: Callable[[], None]) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._wake = wake
        self._lock = threading.Lock()
        self._items: deque[Submitted] = deque()
        self._bytes = 0
        self._asleep = True

    def __len__(self) -> int:
        return len(self._items)

    @property
    def bytes(self) -> int:
        """Roughly how many bytes wait."""
        return self._bytes

    def put(self, item: Submitted) -> bool:
        """Take a turn in; False where it does not fit."""
        with self._lock:
            if len(self._items) >= self._max_items or self._bytes + item.size > self._max_bytes:
                return False
            self._items.append(item)
            self._bytes += item.size
            asleep, self._asleep = self._asleep, False
        if asleep:
            self._wake()
        return True

    def take(self, most: int) -> list[Submitted]:
        """The oldest turns, without waiting; maybe none."""
        with self._lock:
            taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
            self._bytes -= sum(item.size for item in taken)
        return taken

    def sleep(self) -> bool:
        """Ask to be woken for the next turn; False where one has come in the meantime."""
        with self._lock:
            self._asleep = not self._items
            return self._asleep


def size_of(turn: Record | Draft) -> int:
    """Roughly how many bytes a turn keeps alive, in a few microseconds whatever its size."""
    if not isinstance(turn, Record):
        return turn.size
    texts = (turn.question, turn.answer, turn.standalone_question, turn.reference)
    return (
        _OVERHEAD
        + sum(len(text) for text in texts if text)
        + _size_of_contexts(turn.contexts)
        + _size_of_contexts(turn.retrieved)
    )


def _size_of_contexts(contexts: tuple[Context, ...]) -> int:
    if not contexts:
        return 0
    seen = _lengths(islice(contexts, _SAMPLED_CONTEXTS))
    return max(seen, seen * len(contexts) // _SAMPLED_CONTEXTS)


def _lengths(contexts: Iterable[Context]) -> int:
    return sum(len(context.text) + _OVERHEAD for context in contexts)
