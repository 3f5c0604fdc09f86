"""The queue between the application's threads and the worker: bounded, and never a place to wait.

An ordinary lock on the way in would be a trap. A thread that loses the interpreter while it holds the lock
makes every other thread block, which hands the interpreter on while the lock is taken again, and so on: with
four busy threads such a convoy turns a microsecond into half a millisecond for every call. So a submitting
thread only appends to a list, which is atomic. The worker, which looks in every few milliseconds, weighs what
is on the list and enters it into the ledger and the queue. A submitting thread does so only where that cannot
wait, since a bound is near or the list grows long; and then it tries the lock without waiting, since whoever
holds it will enter the rest.

A signal handler, a finalizer or a debugger may strike between any two of these steps in a thread that holds
the lock, submit a turn or ask for counts itself, or raise. So the lock is re-entrant, and is taken and let go
by `with` on methods written in C, between which and the block Python lets no handler in; a `try` after
`acquire()` would leave such a gap. What a handler that raises can cost is the one turn at hand, uncounted.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from sys import maxsize

from steelyard._internal.native import RLock
from steelyard.errors import SkipReason
from steelyard.online.queue._turns import Closed, Counts, Feedback, FinalState, Kept, Ledger, Queued, size_of
from steelyard.record import Record
from steelyard.recording import Draft

_Entry = Queued | SkipReason
_MAX_UNMEASURED = 2000
"""So many turns may lie unweighed where the worker is awake and no bound is near, of skipped ones as many: a
second of a busy application, in which a worker that is busy too does not look in."""
_MEASURE_EVERY = 32
"""Of a list that grows, one turn in so many is weighed by the thread that submits it: 2 us a turn where most
are small, and no more than so many large ones that nobody has foreseen."""
_ENTERED_FROM = 8
"""So many turns wait at most where those who submit them get to enter them."""
_ENTER_AT_ONCE = 2
"""So many does a submitting thread enter: more than the one it adds, and few enough to take no time."""
# Short at first for scripts that flush after one turn, then longer to leave the worker the processor.
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.01


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
        self._lock = RLock()
        self._try_lock = _without_waiting(self._lock)
        self._let_go = threading.Condition(self._lock)
        self._entries: deque[_Entry] = deque()
        self._items: deque[Queued] = deque()
        self._refused: deque[Record | Draft] = deque()
        self._unreadable: deque[tuple[object, Exception]] = deque()
        self._ledger = Ledger()
        self._bytes = 0
        self._full = False
        self._large = 0
        self._asleep = True
        self._feedback = feedback
        self.closed = False
        """Whether turns that come now are refused."""
        self.full_because: SkipReason = "queue_full"
        """Why turns are refused while it is full."""
        self.decided: Callable[[Record | Draft, str], None] = lambda turn, reason: None
        """Told of each turn that will not be judged; called where nothing is locked."""
        self.complain: Callable[[object, Exception], None] = lambda turn, error: None
        """Told of each object that was submitted and is not a turn; called where nothing is locked."""

    def put(self, turn: Queued) -> None:
        """Take in a turn. Never waits; may raise where it turns out not to be one."""
        waiting = len(self._entries) + 1
        # Or large turns after many small ones would be guessed to be small until the worker looks in.
        if not waiting % _MEASURE_EVERY:
            self._measure(turn)
        # Twice what lies on the list, whose weight is a guess until it is weighed.
        near = self._bytes + 2 * waiting * self._large > self._max_bytes
        if near and waiting > _ENTERED_FROM and self._is_too_large(turn, waiting):
            self._refused.append(turn.turn)
            self._entries.append(self.full_because)
        else:
            self._entries.append(turn)
        # Near a bound exact counts are worth the time; elsewhere an append is all that happens.
        if near or waiting > _MAX_UNMEASURED or self.full:
            self._catch_up(wake_worker=False, most=_ENTER_AT_ONCE)
        elif self._asleep:
            # Without the lock: who sets it again, in `sleep`, looks at the list once more after that.
            self._asleep = False
            try:
                self._wake()
            except BaseException:  # out of a signal, say: the next turn must not take the worker for awake
                self._asleep = True
                raise

    def _is_too_large(self, turn: Queued, waiting: int) -> bool:
        """Whether turns like this one would not fit, if as many of them waited.

        Where a list grows though a bound is near, whoever holds the lock weighs more slowly than turns come.
        """
        self._measure(turn)
        return self._bytes + waiting * turn.size > self._max_bytes

    def _measure(self, turn: Queued) -> None:
        """Weigh a turn that is not entered yet; raises where it turns out not to be a turn."""
        turn.size = turn.size or size_of(turn.turn)
        self._large = max(turn.size, self._large)

    def skip(self, reason: SkipReason) -> None:
        """A turn was seen that is not taken in. Never waits."""
        self._entries.append(reason)
        if len(self._entries) > _MAX_UNMEASURED:
            self._catch_up(wake_worker=False, most=_ENTER_AT_ONCE)

    @property
    def full(self) -> bool:
        """Whether turns are refused unweighed: until some are taken, once one did not fit."""
        return self._full or len(self._items) >= self._max_items

    def take(self, most: int) -> list[Queued]:
        """The oldest turns, without waiting for any; maybe none."""
        with self._lock:
            wake_worker = self._enter()
            taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
            self._bytes -= sum(item.size for item in taken)
            # Until some are taken, so that a full queue costs the application a comparison and no weighing.
            self._full = self._full and not taken
        self._catch_up(wake_worker=wake_worker)
        return taken

    def put_back(self, items: Sequence[Queued]) -> None:
        """Turns were taken and have not got to an end: they come again, first and past the bounds."""
        with self._lock:
            wake_worker = self._enter()
            if items and self._ledger.pending >= len(items):  # else they were given up meanwhile
                self._asleep = False
                self._bytes += sum(item.size for item in items)
                self._items.extendleft(reversed(items))
        self._catch_up(wake_worker=wake_worker)

    def sleep(self) -> bool:
        """Ask to be woken for the next turn; False where one has come in the meantime."""
        with self._lock:
            wake_worker = self._enter()
            # Decided under the lock: a turn that comes next finds the worker asleep and wakes it.
            asleep = self._asleep = not self._items
        self._catch_up(wake_worker=wake_worker)
        return asleep

    def ask_again(self) -> None:
        """Ask to be woken for the next turn although some wait already, because nobody could be woken."""
        with self._lock:
            self._asleep = True

    def settle(self, state: FinalState, reason: str = "", *, count: int = 1) -> None:
        """Pending turns have reached a final state; see `Ledger.settle`."""
        with self._lock:
            wake_worker = self._enter()
            self._ledger.settle(state, reason, count=count)
        self._catch_up(wake_worker=wake_worker)

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
        with self._lock:
            wake_worker = self._enter() or self._asleep
            self._asleep = False
            self._ledger.reopen(kept.state)
            self._bytes += kept.item.size
            self._items.append(kept.item)
        self._catch_up(wake_worker=wake_worker)

    def abandon(self) -> int:
        """Give up everything that is still pending; returns how much that was."""
        with self._lock:
            self._enter()
            left = self._ledger.pending
            self._ledger.settle("abandoned", count=left)
            # Counted as given up above; whoever still holds one of them settles nothing any more.
            self._items.clear()
            self._bytes, self._full = 0, False
        return left

    def wait(self, timeout: float) -> int:
        """Wait until nothing is pending, at most this many seconds; returns what still is.

        It looks rather than waits to be told: a handler may interrupt it, and wait itself.
        """
        deadline = time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while (left := self.counts().pending) and (rest := deadline - time.monotonic()) > 0:
            self._pause(min(pause, rest))
            pause = min(2 * pause, _LONGEST_PAUSE)
        return left

    def _pause(self, seconds: float) -> None:
        """Sleep, and let go of the lock where a handler waits that has interrupted its thread within it."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._let_go.wait(seconds)
        else:
            time.sleep(seconds)

    def counts(self) -> Counts:
        with self._lock:
            wake_worker = self._enter()
            counts = self._ledger.counts()
        self._catch_up(wake_worker=wake_worker)
        return counts

    @property
    def waiting(self) -> tuple[int, int]:
        return len(self._items), self._bytes

    def _catch_up(self, *, wake_worker: bool, most: int = maxsize) -> None:
        """Enter what is on the list, unless somebody holds the lock, who will then do it on the way out."""
        while self._entries and most > 0:
            try:
                with self._try_lock as held:
                    if held:
                        wake_worker |= self._enter(most)
                        most -= _ENTER_AT_ONCE
            except RuntimeError:
                break  # not held, so that there was nothing to let go of
        try:
            while self._refused:
                self.decided(self._refused.popleft(), self.full_because)
            while self._unreadable:
                self.complain(*self._unreadable.popleft())
        except IndexError:
            # Both may have seen the last entry; only one can take it.
            pass  # another thread was quicker
        if wake_worker:
            self._wake()

    def _enter(self, most: int = maxsize) -> bool:
        """Enter the oldest on the list; says whether the worker must be woken. Needs the lock."""
        entries, items, before = self._entries, self._items, len(self._items)
        while entries and most > 0:
            most -= 1
            entry = entries.popleft()
            if isinstance(entry, str):
                self._ledger.skip(entry)
            elif self._weigh(entry):
                self._accept(entry)
        if not self._asleep or len(items) == before:
            return False
        self._asleep = False
        return True

    def _weigh(self, item: Queued) -> bool:
        """Find out how many bytes a turn keeps alive; False where it turns out not to be a turn."""
        try:
            item.size = item.size or size_of(item.turn)
        except Exception as error:  # noqa: BLE001 - a turn of somebody's own may raise anything
            self._ledger.skip("unreadable")
            self._unreadable.append((item.turn, error))
            return False
        return True

    def _accept(self, item: Queued) -> None:
        # What a turn may weigh that nobody has looked at: as much as a large one of late.
        # Decays by itself, so that one huge turn does not make the queue look full for long.
        self._large = max(item.size, self._large - self._large // 64)
        if self.full or self._bytes + item.size > self._max_bytes:
            self._full = bool(self._items) and 2 * self._bytes > self._max_bytes
            self._ledger.skip(self.full_because)
            self._refused.append(item.turn)
        else:
            # No handler gets in between these three lines: see the top.
            self._ledger.accept()
            self._bytes += item.size
            self._items.append(item)


def _without_waiting(lock: RLock) -> AbstractContextManager[bool]:
    """The lock for `with`, saying whether it was free; where it was not, the end raises RuntimeError."""
    methods = {"__enter__": staticmethod(partial(lock.acquire, False)), "__exit__": lock.__exit__}
    made: AbstractContextManager[bool] = type("TryLock", (), methods)()
    return made
