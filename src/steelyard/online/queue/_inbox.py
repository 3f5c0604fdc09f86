"""The queue between the application's threads and the worker: bounded, and never a place to wait.

An ordinary lock on the way in would be a trap. A thread that loses the interpreter while it holds the lock
makes every other thread block, which hands the interpreter on while the lock is taken again, and so on: with
four busy threads such a convoy turns a microsecond into half a millisecond for every call. So a submitting
thread only appends to a list, which is atomic, and then tries the lock without waiting: who gets it enters
what is on the list into the ledger and the queue; who does not leaves that to the next one, or to the worker.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from steelyard.errors import SkipReason
from steelyard.online.queue._feedback import Feedback, Kept
from steelyard.online.queue._ledger import Counts, FinalState, Ledger
from steelyard.online.queue._turns import Closed, Queued
from steelyard.record import Record
from steelyard.recording import Draft

_Entry = Queued | SkipReason


class Inbox:
    """Turns between the application's threads and the worker, first in, first out, with the ledger of all.

    What does not fit is refused: the newest is dropped, never an older one. While turns keep coming the
    worker looks in by itself every few milliseconds; waking a sleeping event loop costs a system call and a
    wait for the interpreter, so only the first turn after the worker has said that it goes to sleep does it.
    """

    def __init__(
        self, *, max_items: int, max_bytes: int, wake: Callable[[], None], feedback: Feedback
    ) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._wake = wake
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._entries: deque[_Entry] = deque()
        self._items: deque[Queued] = deque()
        self._ledger = Ledger()
        self._bytes = 0
        self._asleep = True
        self._feedback = feedback
        self.closed = False
        """Whether turns that come now are refused."""
        self.decided: Callable[[Record | Draft, str], None] = lambda turn, reason: None
        """Told of each turn that will not be judged; called where nothing is locked."""

    def put(self, entry: _Entry) -> None:
        """Take in a turn, or the reason why one is skipped. Never waits."""
        self._entries.append(entry)
        self._catch_up(rouse=False)

    def take(self, most: int) -> list[Queued]:
        """The oldest turns, without waiting for any; maybe none."""
        with self._entered():
            taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
            self._bytes -= sum(item.size for item in taken)
        return taken

    def sleep(self) -> bool:
        """Ask to be woken for the next turn; False where one has come in the meantime."""
        with self._entered():
            self._asleep = not self._items
            return self._asleep

    def settle(self, state: FinalState, reason: str = "", *, count: int = 1) -> None:
        """Pending turns have reached a final state; see `Ledger.settle`."""
        with self._entered():
            self._ledger.settle(state, reason, count=count)
            if not self._ledger.pending:
                self._idle.notify_all()

    def close_turn(self, closed: Closed) -> None:
        """A pending turn has ended; where its user disliked it in the meantime, it is taken again."""
        self.settle(closed.state, closed.reason)
        if closed.requeue is not None:
            self._requeue(self._feedback.keep(closed.requeue, closed.state))

    def take_feedback(self, record_id: str, value: object) -> None:
        """Remember what a user said about a turn, and take the turn again if that may change its rate."""
        self._requeue(self._feedback.add(record_id, value))

    def _requeue(self, kept: Kept | None) -> None:
        """Queue a turn again that was settled before, past the bounds; see `Ledger.reopen`."""
        if kept is None or self.closed:
            return
        with self._entered():
            self._ledger.reopen(kept.state)
            self._append(kept.item)
            rouse, self._asleep = self._asleep, False
        if rouse:
            self._wake()

    def abandon(self) -> int:
        """Give up everything that is still pending; returns how much that was."""
        with self._entered():
            left = self._ledger.pending
            self._ledger.settle("abandoned", count=left)
            self._items.clear()
            self._bytes = 0
            self._idle.notify_all()
            return left

    def wait(self, timeout: float | None) -> int:
        """Wait until nothing is pending, at most this many seconds; returns what still is."""
        with self._entered():
            self._idle.wait_for(lambda: not self._ledger.pending, timeout)
            return self._ledger.pending

    def counts(self) -> Counts:
        """The ledger now."""
        with self._entered():
            return self._ledger.counts()

    @property
    def waiting(self) -> tuple[int, int]:
        """How many turns wait, and roughly how many bytes they keep alive."""
        return len(self._items), self._bytes

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Hold the lock, with everything entered that came before."""
        with self._lock:
            rouse = self._enter()
            yield
        self._catch_up(rouse=rouse)

    def _catch_up(self, *, rouse: bool) -> None:
        """Enter what is on the list, unless somebody holds the lock, who will then do it on the way out."""
        while self._entries and self._lock.acquire(blocking=False):
            try:
                rouse |= self._enter()
            finally:
                self._lock.release()
        if rouse:
            self._wake()

    def _enter(self) -> bool:
        """Enter what is on the list; says whether the worker must be woken. Needs the lock."""
        entries, before = self._entries, len(self._items)
        while entries:
            entry = entries.popleft()
            if isinstance(entry, str):
                self._ledger.skip(entry)
            elif len(self._items) >= self._max_items or self._bytes + entry.size > self._max_bytes:
                self._ledger.skip("queue_full")
            else:
                self._ledger.accept()
                self._append(entry)
        if not self._asleep or len(self._items) == before:
            return False
        self._asleep = False
        return True

    def _append(self, item: Queued) -> None:
        self._items.append(item)
        self._bytes += item.size
