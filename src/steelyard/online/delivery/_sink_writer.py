"""One sink's way out: a bounded queue, a thread of its own, and what happens when it fails or hangs.

Every sink has its own event loop in its own thread. So one that is slow, blocks its loop, raises SystemExit
or never comes back holds up neither judging nor another sink. What it does not take goes back to whoever
handed it over: a stored queue keeps it and brings it again; without one it is lost, and counted by cause.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque

from steelyard._internal.logs import SafeLogger
from steelyard._internal.warn_once import WarnOnce
from steelyard.online.delivery._attempts import Handed, Outcome, Settled, attempt
from steelyard.online.delivery._sink_counts import SinkCounts, SinkLedger
from steelyard.online.delivery._sink_thread import GRACE, SinkThread
from steelyard.online.queue._turns import size_of
from steelyard.scores import Evaluation
from steelyard.sinks import Sink

_log = SafeLogger("steelyard.online")
_PLACES = 1000  # what waits for a slow sink is kept in memory, so it has a bound
_BYTES = 16 * 1024 * 1024  # large records fill the memory before the places are taken
_TRIES = 3  # what fails three times in a row is not a hiccup
# Doubled before the last try, which makes 0.6 s in all: longer outages are for the rest below.
_PAUSE = 0.2
# A sink that is away is not asked for every turn. Doubled each time it fails again.
_FIRST_REST = 1.0
_LONGEST_REST = 30.0
_HANGING = 8  # each write that hangs costs a thread until it returns; a broken sink must not take them all
_REFUSED_AFTER = 4  # attempts at one result that fail while others are taken: then it is not the sink
_LATE_PAUSE = 2.0  # between two looks at results whose traces have not come yet
_BROUGHT = 256  # results brought at a time to a sink that works
_PROBED = 16  # ... and to one that has failed


class SinkWriter:
    """Writes to one sink, one batch at a time: whatever arrives during a write goes into the next.

    A write that raises or takes too long is tried three times. Then the sink is away: it gives its results
    back and takes none for a second, and for twice as long whenever it fails again, up to half a minute. A
    result that fails alone, four times, while others are taken is refused for good. A thread that does not
    come back from a write is left behind with its batch, and another one goes on, while fewer than eight
    hang.

    Args:
        sink: The sink.
        key: Its name, or another one if two sinks share it.
        timeout: Seconds for one write.
    """

    def __init__(self, sink: Sink, *, key: str, timeout: float) -> None:
        self.name = sink.name
        self.key = key
        self._sink = sink
        self._timeout = timeout
        self._waiting: deque[Handed] = deque()
        self._ledger = SinkLedger()
        self._turn: SinkThread | None = None
        self._hanging: list[SinkThread] = []
        self._closed = False
        self._warn = WarnOnce(_log)
        self._rest = _FIRST_REST
        self._resting_until = self._late_until = 0.0
        self._cause = ""

    @property
    def counts(self) -> SinkCounts:
        """What became of it all."""
        return self._ledger.counts(self._sink)

    @property
    def full(self) -> bool:
        """Whether no more Evaluations may wait: for their number, or for what they keep alive."""
        return len(self._waiting) >= _PLACES or sum(handed.size for handed in tuple(self._waiting)) > _BYTES

    @property
    def places(self) -> int:
        """How many of the results that wait for it in the queue may be brought now: few if it has failed."""
        if self._turn is None or self._resting or len(self._waiting) >= _BROUGHT or self.full:
            return 0
        if time.monotonic() < self._late_until:
            return 0
        return _PROBED if self._failing else _BROUGHT

    @property
    def restarts(self) -> int:
        """How often the sink would have ended its thread."""
        return self._turn.thread.restarts if self._turn is not None else 0

    @property
    def _resting(self) -> bool:
        return time.monotonic() < self._resting_until

    @property
    def _failing(self) -> bool:
        return self._rest > _FIRST_REST

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
            OSError: If there are no file descriptors for its loop.
        """
        if self._turn is None:
            turn = SinkThread(self._sink, self._waiting, self._bring, timeout=self._timeout)
            try:
                turn.thread.start()
                self._turn = turn
            finally:
                if self._turn is None:
                    turn.thread.stop()

    def put(self, evaluation: Evaluation, settled: Settled, *, kept: bool) -> None:
        """Hand over an Evaluation; it comes back at once if the sink is away or its queue is full.

        Args:
            evaluation: What to write.
            settled: Told whether the sink has it, or has refused it for good.
            kept: Whether a stored queue keeps what comes back; otherwise it counts as lost.
        """
        self._ledger.handed += 1
        turn = self._turn
        size = size_of(evaluation.record) if evaluation.record is not None else 0
        handed = Handed(evaluation, size, settled, kept)
        # Without a thread nobody would ever settle it, and the queue would keep it for ever.
        if turn is None:
            return self._keep_back("closed" if self._closed else "hangs", [handed])
        if self._resting:
            return self._keep_back(self._cause, [handed])
        if self.full:
            if not kept:
                self._warn(
                    "full",
                    "the sink %r is slower than the turns; results are lost for it; "
                    "set a spool, or judge fewer turns",
                    self.name,
                )
            return self._keep_back("queue_full", [handed])
        self._waiting.append(handed)
        turn.rouse()
        return None

    def look(self) -> None:
        """Replace the thread where it has not come back from a write; called now and then."""
        turn = self._turn
        # The write has its own timeout within the loop; later than that the loop itself is blocked.
        late = self._timeout + GRACE
        if turn is not None and turn.began is not None and time.monotonic() - turn.began >= late:
            self._turn = None
            self._hanging.append(turn)
            batch = turn.leave()
            self._warn(
                "hangs",
                "the sink %r blocks its thread; another thread goes on; "
                "check its server, or lower sink_timeout",
                self.name,
            )
            self._keep_back("hangs", batch)
        if self._turn is None and not self._closed:
            self._hanging = [one for one in self._hanging if not one.thread.ended]
            if len(self._hanging) <= _HANGING:
                with contextlib.suppress(RuntimeError, OSError):
                    self.start()
            # No thread could be started: what waits is given up rather than kept in memory.
            if self._turn is None:
                self._keep_back("hangs", self._drained())

    def stop(self) -> None:
        """Ask the thread to close the sink; does not wait."""
        self._closed = True
        if self._turn is not None:
            self._turn.thread.stop()

    def close(self, timeout: float) -> None:
        """Let the sink write what it holds back, close it, and give back what waits; blocks."""
        self.stop()
        turn, self._turn = self._turn, None
        if turn is not None and not turn.thread.join(timeout):
            self._keep_back("closed", turn.leave())
        self._keep_back("closed", self._drained())

    def _drained(self) -> list[Handed]:
        drained = []
        # Both threads may drain it.
        with contextlib.suppress(IndexError):
            while True:
                drained.append(self._waiting.popleft())
        return drained

    def _keep_back(self, cause: str, batch: list[Handed]) -> None:
        """Give back what the sink does not get, in the Monitor's thread."""
        for handed in batch:
            self._ledger.keep_back(cause, kept=handed.kept)
            handed.settled(False)

    async def _bring(self, turn: SinkThread, batch: list[Handed]) -> None:
        """See a batch through, in the sink's thread: what it does not take after three tries goes back."""
        failures: dict[Handed, int] = {}
        tries = 0
        while batch:
            turn.hold(batch)
            try:
                outcome = await attempt(turn.write, batch, in_parts=tries == _TRIES - 1 or self._failing)
            except BaseException:
                # Settled whatever it was, or the turns would never be confirmed.
                self._give_back("closed", turn.claimed())
                raise
            # Nothing is left where this thread was given up: whoever did so has settled them.
            batch = self._settle(outcome, failures) if turn.claimed() else []
            tries = 0 if outcome.taken else tries + 1
            if batch and (tries >= _TRIES or (tries and self._failing)):
                self._away(outcome, batch)
                return
            if batch:
                turn.hold(batch)
                await self._pause(turn, tries)
                batch = turn.claimed()

    async def _pause(self, turn: SinkThread, tries: int) -> None:
        try:
            await asyncio.sleep(_PAUSE * 2 ** max(0, tries - 1))
        except BaseException:
            self._give_back("closed", turn.claimed())
            raise

    def _settle(self, outcome: Outcome, failures: dict[Handed, int]) -> list[Handed]:
        """Enter what became of a batch; returns what has still to be written."""
        refused = list(outcome.refused)
        left = []
        for handed in outcome.left:
            # They fail while others are taken. Asked several times, for a sink may fail now and then.
            failures[handed] = failures.get(handed, 0) + bool(outcome.taken or handed in failures)
            if failures[handed] >= _REFUSED_AFTER:
                refused.append((handed, outcome.cause))
            else:
                left.append(handed)
        for handed in outcome.taken:
            self._ledger.written += 1
            handed.settled(True)
        for handed, cause in refused:
            self._warn(
                "refused", "the sink %r refuses a result: %s; later ones are only counted", self.name, cause
            )
            self._ledger.refuse(cause)
            handed.settled(True)
        if outcome.late:
            self._late_until = time.monotonic() + _LATE_PAUSE
            self._give_back(outcome.cause, outcome.late)
        if outcome.taken and self._failing:
            self._rest = _FIRST_REST
            if self._warn.over("away"):
                _log.warning("the sink %r takes results again", self.name)
        return left

    def _give_back(self, cause: str, batch: list[Handed]) -> None:
        for handed in batch:
            self._ledger.give_back(cause, kept=handed.kept)
            handed.settled(False)

    def _away(self, outcome: Outcome, batch: list[Handed]) -> None:
        """The sink takes nothing for a while, and for ever longer if it goes on failing."""
        fate = "they wait until it does" if batch[0].kept else "they are counted as lost"
        self._warn(
            "away",
            "the sink %r does not take results: %s; %s; run `steelyard doctor`",
            self.name,
            outcome.words,
            fate,
        )
        self._cause = outcome.cause
        self._resting_until = time.monotonic() + self._rest
        self._rest = min(2 * self._rest, _LONGEST_REST)
        self._give_back(outcome.cause, [*batch, *self._drained()])
