"""From a finished Evaluation to everybody who is waiting for it: sinks, and those who listen.

`on_evaluation` callbacks run in a thread of their own, `on_decision` at once in the thread that decided.

    finished --deliver--> sinks --all have it--> gone
                            `--some do not--> parked in the queue for those --bring_back--> sink

A result is settled for a sink once the sink has it, or has refused that one result for good. What a sink does
not take is parked for that sink in the queue's own store, whoever judged it; a sink that works again gets it
from there, in any process that has such a sink. So a sink that is away holds up nobody else, and costs no
memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import partial

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.native import get_ident
from steelyard._internal.text import error_place
from steelyard._internal.threads import DaemonExecutor
from steelyard.online._options import MonitorOptions
from steelyard.online._prepare import without_content
from steelyard.online._sink_writer import SinkCounts, SinkWriter
from steelyard.online.queue._protocol import QueueFailed, TurnQueue
from steelyard.online.queue._turns import Leased, Undelivered
from steelyard.record import Record, TraceRef
from steelyard.recording import Draft, unrecorded
from steelyard.scores import Evaluation, Usage

Callback = Callable[[Evaluation], object]
"""Takes one finished Evaluation."""
DecisionCallback = Callable[[TraceRef | None, str], object]
"""Takes the trace of a turn that will not be judged, and why: a reason or cause of `Stats`."""

_log = SafeLogger("steelyard.online")
_WAIT = 0.005
_WAITING = 1000  # a callback slower than the traffic misses turns rather than filling the memory


class Notifier:
    """Hands Evaluations to callbacks, in order. What comes while 1,000 wait is not delivered."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._callbacks: dict[int, Callback] = {}
        self._warn = WarnOnce(_log)
        self.begin()

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Add a callback; returns the function that removes it."""
        number = next(self._numbers)
        self._callbacks[number] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(number, None)

        return unsubscribe

    def start(self) -> None:
        """Start the thread, if anybody listens: with the Monitor, since at exit it would be too late."""
        if self._callbacks and not self._closed:
            with contextlib.suppress(RuntimeError):
                self._thread.start()

    def tell(self, evaluation: Evaluation) -> None:
        """Pass an Evaluation on, soon."""
        if not self._callbacks or self._closed:
            return
        if len(self._waiting) >= _WAITING:
            self.missed += 1
            return
        with contextlib.suppress(RuntimeError):
            told = self._thread.submit(self._tell_all, evaluation)
            self._waiting.add(told)
            told.add_done_callback(self._waiting.discard)

    def wait(self, timeout: float) -> None:
        """Wait until everything was delivered; returns at once inside a callback."""
        ends = time.monotonic() + timeout
        waiting = () if get_ident() == self._working else tuple(self._waiting)
        # Looked at rather than waited for: greenlets that share the thread must run on.
        while not all(told.done() for told in waiting) and time.monotonic() < ends:
            time.sleep(_WAIT)

    def close(self) -> None:
        """Let the thread end after what waits."""
        self._closed = True
        self._thread.shutdown()

    def begin(self) -> None:
        """Begin, or begin anew in a forked child, with the same callbacks."""
        self._thread = DaemonExecutor(1, name="steelyard-callbacks")
        self._working: int | None = None
        self._waiting: set[Future[None]] = set()
        self._closed = False
        self.missed = 0

    def _tell_all(self, evaluation: Evaluation) -> None:
        self._working = get_ident()
        with unrecorded():
            for number, callback in list(self._callbacks.items()):
                self._call(number, callback, evaluation)

    def _call(self, number: int, callback: Callback, evaluation: Evaluation) -> None:
        started = time.monotonic()
        try:
            callback(evaluation)
        except BaseException as error:  # noqa: BLE001 - the user's function may raise anything, also SystemExit
            self._warn(
                number,
                "an on_evaluation callback raised %s; correct it; nothing else happens",
                error_place(error),
            )
        if (seconds := time.monotonic() - started) > 1:
            self._warn(
                number,
                "an on_evaluation callback took %.1f s; make it shorter, or turns wait for it",
                seconds,
            )


class Decisions:
    """Tells callbacks at once, in the thread that decided."""

    def __init__(self) -> None:
        self._callbacks: tuple[DecisionCallback, ...] = ()
        self._warn = WarnOnce(_log)

    def subscribe(self, callback: DecisionCallback) -> Callable[[], None]:
        self._callbacks = (*self._callbacks, callback)

        def unsubscribe() -> None:
            self._callbacks = tuple(known for known in self._callbacks if known is not callback)

        return unsubscribe

    def tell(self, turn: Record | Draft, reason: str) -> None:
        """A turn will not be judged."""
        for callback in self._callbacks:
            try:
                callback(turn.trace, reason)
            except BaseException as error:
                # In the main thread it may come out of a signal handler, and is the application's.
                if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
                    raise
                self._warn(
                    "raised",
                    "an on_decision callback raised %s; correct it; nothing else happens",
                    type(error).__name__,
                )


class Delivery:
    """Hands Evaluations to callbacks and sinks, without content where that is not to be stored."""

    def __init__(self, options: MonitorOptions, tell: Callable[[Evaluation], None]) -> None:
        self._store_content = options.store_content
        self._tell = tell
        self.writers: list[SinkWriter] = []
        """One for each sink."""
        seen: Counter[str] = Counter()
        for sink in options.sinks:
            seen[sink.name] += 1
            # What waits for a sink is kept under its key, so that two never share one.
            key = sink.name if seen[sink.name] == 1 else f"{sink.name}#{seen[sink.name]}"
            self.writers.append(SinkWriter(sink, key=key, timeout=options.sink_timeout))
        self._settled: deque[Callable[[], None]] = deque()
        self._told: asyncio.AbstractEventLoop | None = None
        self.usage = Usage()

    @property
    def sinks(self) -> dict[str, SinkCounts]:
        return {writer.key: writer.counts for writer in self.writers}

    @property
    def restarts(self) -> int:
        return sum(writer.restarts for writer in self.writers)

    def start(self) -> None:
        """Start each sink's thread; called where the Monitor's own thread is started."""
        for writer in self.writers:
            writer.start()

    def strip(self, evaluation: Evaluation) -> Evaluation:
        """The Evaluation as it may be kept."""
        return evaluation if self._store_content else without_content(evaluation)

    def deliver(
        self,
        evaluation: Evaluation,
        settled: Callable[[Collection[str]], None],
        *,
        kept: bool,
        only: str = "",
    ) -> Collection[str]:
        """Hand an Evaluation to everybody, or to one sink that did not take it before.

        Args:
            evaluation: What was judged.
            settled: Called in the running loop as soon as each sink has it or has given it back, with the
                keys of those that do not have it.
            kept: Whether a stored queue keeps what a sink gives back; otherwise it is lost.
            only: Key of the one sink; callbacks have heard of the result then.

        Returns:
            The keys of the sinks that do not have it at the moment you look.
        """
        evaluation = self.strip(evaluation)
        if not only:
            self.usage += evaluation.usage
            self._tell(evaluation)
        loop = asyncio.get_running_loop()
        writers = [writer for writer in self.writers if only in ("", writer.key)]
        lacking = {writer.key for writer in writers}
        left = len(writers)
        # Without sinks nobody else would settle it.
        if not left:
            settled(lacking)

        def count(key: str, taken: bool) -> None:
            nonlocal left
            left -= 1
            if taken:
                lacking.discard(key)
            if not left:
                settled(lacking)

        def one_settled(key: str, taken: bool) -> None:
            self._settled.append(partial(count, key, taken))
            # One call for all that a sink has taken at a time: each wakes the loop by a system call.
            if self._told is not loop and not loop.is_closed():
                self._told = loop
                loop.call_soon_threadsafe(self._count_settled)

        for writer in writers:
            writer.put(evaluation, partial(one_settled, writer.key), kept=kept)
        return lacking

    def _count_settled(self) -> None:
        self._told = None  # first: whoever settles from now on calls again
        while self._settled:
            self._settled.popleft()()

    def look(self) -> None:
        """Replace the threads of sinks that hang; called in the loop, now and then."""
        for writer in self.writers:
            writer.look()

    def stop(self) -> None:
        """Ask the sinks' threads to close them; does not wait."""
        for writer in self.writers:
            writer.stop()

    def close(self, timeout: float) -> None:
        """Close the sinks side by side, within this time; blocks."""
        deadline = time.monotonic() + timeout
        # All are asked before the first is waited for, so that they close side by side.
        self.stop()
        for writer in self.writers:
            writer.close(max(0.0, deadline - time.monotonic()))


_LOOK = 0.1  # between two looks at whether a sink has room for what waits for it
_AGAIN = 1.0  # between two looks at whether something waits, and two attempts to park what did not fit


class Outbox:
    """Turns and results that this process holds of one queue."""

    def __init__(self, queue: TurnQueue, delivery: Delivery) -> None:
        self._queue = queue
        self._delivery = delivery
        self._held: dict[tuple[int, str], Leased | Undelivered] = {}
        # By result: the sinks that are not known to have it.
        self._owed: dict[tuple[int, str], Collection[str]] = {}
        # Sinks may settle results after the worker has begun anew.
        self._settled: asyncio.Queue[tuple[Undelivered, Collection[str]]] = asyncio.Queue()
        self._room = asyncio.Event()
        self._room.set()

    def hold(self, leased: Leased | Undelivered) -> None:
        """This process works on it: its lease is renewed."""
        self._held[_key(leased)] = leased

    def drop(self, leased: Leased | Undelivered) -> None:
        """This process has nothing to do with it any more."""
        self._held.pop(_key(leased), None)
        self._owed.pop(_key(leased), None)

    async def room(self) -> None:
        """Wait while results do not fit into the queue's store: no more is judged then."""
        await self._room.wait()

    def deliver(self, result: Undelivered) -> None:
        """Hand a result to the sinks that do not have it."""
        self.hold(result)

        def settled(lacking: Collection[str]) -> None:
            self._settled.put_nowait((result, lacking))

        kept, only = self._queue.durable, result.sink
        self._owed[_key(result)] = self._delivery.deliver(result.evaluation, settled, kept=kept, only=only)

    async def run(self) -> None:
        """Keep leases, and tell the queue what sinks have and what they do not, until it fails."""
        work = [self._renew(), self._confirm()]
        if self._queue.durable:
            work += [self._bring_back(writer) for writer in self._delivery.writers]
        try:
            async with asyncio.TaskGroup() as group:
                for one in work:
                    group.create_task(one)
        except* QueueFailed:
            pass

    async def give_back(self) -> None:
        """Leave everything to the queue, because this process stops or the queue has failed."""
        held, owed = list(self._held.values()), dict(self._owed)
        self._held.clear()
        self._owed.clear()
        with contextlib.suppress(QueueFailed):
            results = [one for one in held if isinstance(one, Undelivered) and _key(one) in owed]
            # In memory they stay undelivered: their sinks may still take them.
            if self._queue.durable:
                await self._queue.park([(one, tuple(owed[_key(one)])) for one in results])
            # A result that no sink was handed yet is owed to all of them.
            await self._queue.release([one for one in held if one not in results])

    async def _renew(self) -> None:
        while True:
            # A third, so that one renewal that is lost does not cost the lease.
            await asyncio.sleep(min(self._queue.lease_seconds / 3, 3600.0))
            await self._queue.renew(list(self._held.values()))

    async def _confirm(self) -> None:
        """Tell the queue what has become of results, of all that are ready at a time."""
        stuck: list[tuple[Undelivered, Collection[str]]] = []
        try:
            while True:
                lacking = stuck
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN if stuck else None):
                        lacking = [*stuck, await self._settled.get()]
                # One transaction or message for all of them: sinks settle whole batches at a time.
                while not self._settled.empty():
                    lacking.append(self._settled.get_nowait())
                written = [result for result, sinks in lacking if not sinks]
                await self._queue.delivered(written)
                stuck = await self._queue.park([one for one in lacking if one[1]])
                for result in {id(one): one for one, _ in lacking}.values():
                    if not any(result is one for one, _ in stuck):
                        self.drop(result)
                # What fits nowhere stays in memory, so that no more may be made.
                self._room.clear() if stuck else self._room.set()
        finally:
            self._room.set()

    async def _bring_back(self, writer: SinkWriter) -> None:
        """Bring a sink what waits for it in the queue, as long as it takes it."""
        while True:
            pause = _LOOK
            if places := writer.places:
                results = await self._queue.parked(writer.key, places)
                for result in results:
                    self.deliver(result)
                pause = _LOOK if results else _AGAIN
            await asyncio.sleep(pause)


def _key(one: Leased | Undelivered) -> tuple[int, str]:
    return one.seq, one.sink if isinstance(one, Undelivered) else ""
