"""One sink's way out: a bounded queue, a thread of its own, and what happens when it fails or hangs.

Every sink has its own event loop in its own thread. So one that is slow, blocks its loop, raises SystemExit
or never comes back holds up neither judging nor another sink. What it does not take goes back to whoever
handed it over: a stored queue keeps it and brings it again; without one it is lost, and counted by cause.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Literal

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.native import RLock
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError, SinkError
from steelyard.online._sink_thread import GRACE, Handed, SinkThread, drained
from steelyard.online.queue._turns import size_of
from steelyard.results.counts import Counting, ScoreCounts
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
_BLIND = 10
"""Failed writes without one that succeeds, after which the sink is taken to be away: a batch of 256 is halved
eight times until a single result is tried."""
_MEANINGS: Mapping[str, Literal["refused", "late"]] = {
    "rejected": "refused",
    "unstorable": "refused",
    "trace_not_found": "late",
}
"""Causes of a SinkError that are about the results and not about the sink."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkCounts:
    """What became of the Evaluations handed to one sink by this process: each is waiting, written, refused,
    left with the stored queue, or lost.
    """  # noqa: D205 - the states are the summary

    written: int
    """Evaluations that the sink has taken; what it did with each Score is in `scores`."""
    lost: int
    """Evaluations that it has not taken and that nobody keeps; the sum of `lost_by`. With a stored queue that
    works there are none."""
    waiting: int = 0
    """Evaluations that wait for it in this process, or are being written."""
    kept: int = 0
    """How often one was left in the stored queue, to be brought again; `stats().spool.waiting` tells how many
    wait there now."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Evaluations that it has refused for good while it took others, by cause."""
    lost_by: Mapping[str, int] = field(default_factory=dict)
    """Lost by cause: `timeout`, `hangs` (it blocks its thread), `queue_full` (it is slower than the turns),
    `closed`, a SinkError's cause, or the name of an exception."""
    scores: ScoreCounts | None = None
    """The sink's own ledger, in Scores: written, refused, left out, lost; None where it keeps none."""


@dataclass(slots=True)
class _Attempt:
    """What is left of a batch after one attempt."""

    left: list[Handed] = field(default_factory=list)
    """What the sink does not have, and has not refused."""
    took_some: bool = False
    cause: str = ""
    """Why something is left, in a word."""
    words: str = ""
    """The same as it may be logged."""


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
        self._handed = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        # Re-entrant: a signal handler may ask for counts while its own thread counts.
        self._counting = RLock()
        self._thread: SinkThread | None = None
        self._hanging: list[SinkThread] = []
        self._restarts = 0
        self._closed = False
        self._warn = WarnOnce(_log)
        self._rest = _FIRST_REST
        self._resting_until = self._late_until = 0.0
        self._cause = ""

    @property
    def counts(self) -> SinkCounts:
        with self._counting:
            found, handed = dict(self._counts), self._handed
        by_cause: dict[str, dict[str, int]] = {"written": {}, "kept": {}, "refused": {}, "lost": {}}
        for (state, cause), count in found.items():
            by_cause[state][cause] = count
        scores = None
        with contextlib.suppress(Exception):  # a sink of somebody's own may raise anything
            scores = self._sink.counts if isinstance(self._sink, Counting) else None
        return SinkCounts(
            written=sum(by_cause["written"].values()),
            lost=sum(by_cause["lost"].values()),
            waiting=max(0, handed - sum(found.values())),
            kept=sum(by_cause["kept"].values()),
            refused=by_cause["refused"],
            lost_by=by_cause["lost"],
            scores=scores,
        )

    @property
    def full(self) -> bool:
        """Whether no more Evaluations may wait: for their number, or for what they keep alive."""
        return len(self._waiting) >= _PLACES or sum(handed.size for handed in tuple(self._waiting)) > _BYTES

    @property
    def places(self) -> int:
        """How many of the results that wait for it in the queue may be brought now: few if it has failed."""
        if self._thread is None or len(self._waiting) >= _BROUGHT or self.full:
            return 0
        if time.monotonic() < max(self._resting_until, self._late_until):
            return 0
        return _PROBED if self._failing else _BROUGHT

    @property
    def restarts(self) -> int:
        return self._restarts + (self._thread.thread.restarts if self._thread is not None else 0)

    @property
    def _failing(self) -> bool:
        return self._rest > _FIRST_REST

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
            OSError: If there are no file descriptors for its loop.
        """
        if self._thread is None:
            made = SinkThread(self._sink, self._waiting, self._see_through, timeout=self._timeout)
            made.thread.start()
            self._thread = made

    def put(self, evaluation: Evaluation, settled: Callable[[bool], object], *, kept: bool) -> None:
        """Hand over an Evaluation; it comes back at once if the sink is away or its queue is full.

        Args:
            evaluation: What to write.
            settled: Told whether the sink has it, or has refused it for good.
            kept: Whether a stored queue keeps what comes back; otherwise it counts as lost.
        """
        self._handed += 1
        size = size_of(evaluation.record) if evaluation.record is not None else 0
        handed = Handed(evaluation, size, settled, kept)
        # Without a thread nobody would ever settle it, and the queue would keep it for ever.
        if self._thread is None:
            return self._give_back("closed" if self._closed else "hangs", [handed])
        if time.monotonic() < self._resting_until:
            return self._give_back(self._cause, [handed])
        if self.full:
            if not kept:
                self._warn(
                    "full",
                    "the sink %r is slower than the turns; results are lost for it; "
                    "set a spool, or judge fewer turns",
                    self.name,
                )
            return self._give_back("queue_full", [handed])
        self._waiting.append(handed)
        self._thread.rouse()
        return None

    def look(self) -> None:
        """Replace the thread where it has not come back from a write; called now and then."""
        thread = self._thread
        # The write has its own timeout within the loop; later than that the loop itself is blocked.
        if thread is not None and thread.busy_for >= self._timeout + GRACE:
            self._thread, self._restarts = None, self.restarts
            self._hanging.append(thread)
            self._warn(
                "hangs",
                "the sink %r blocks its thread; another thread goes on; "
                "check its server, or lower sink_timeout",
                self.name,
            )
            self._give_back("hangs", thread.leave())
        if self._thread is None and not self._closed:
            self._hanging = [one for one in self._hanging if not one.thread.ended]
            if len(self._hanging) <= _HANGING:
                with contextlib.suppress(RuntimeError, OSError):
                    self.start()
            # No thread could be started: what waits is given up rather than kept in memory.
            if self._thread is None:
                self._give_back("hangs", drained(self._waiting))

    def stop(self) -> None:
        """Ask the thread to close the sink; does not wait."""
        self._closed = True
        if self._thread is not None:
            self._thread.thread.stop()

    def close(self, timeout: float) -> None:
        """Let the sink write what it holds back, close it, and give back what waits; blocks."""
        self.stop()
        thread = self._thread
        self._thread, self._restarts = None, self.restarts
        if thread is not None and not thread.thread.join(timeout):
            self._give_back("closed", thread.leave())
        self._give_back("closed", drained(self._waiting))

    def _settle(
        self, handed: Handed, state: Literal["written", "refused", "kept", "lost"], cause: str = ""
    ) -> None:
        with self._counting:
            self._counts[state, cause] += 1
        handed.settled(state in ("written", "refused"))

    def _give_back(self, cause: str, batch: Iterable[Handed]) -> None:
        """The sink does not get these."""
        for handed in batch:
            self._settle(handed, "kept" if handed.kept else "lost", "" if handed.kept else cause)

    async def _see_through(self, thread: SinkThread, batch: list[Handed]) -> None:
        """See a batch through, in the sink's thread: what it does not take after three tries goes back."""
        try:
            await self._try(thread, batch)
        except BaseException:
            # Settled whatever it was, or the turns would never be confirmed.
            self._give_back("closed", thread.claimed())
            raise

    async def _try(self, thread: SinkThread, batch: list[Handed]) -> None:
        failures: Counter[Handed] = Counter()
        tries = 0
        while batch:
            outcome = await self._attempt(thread, batch, in_parts=tries == _TRIES - 1 or self._failing)
            if thread.left:  # whoever gave it up has settled what it had
                return
            if outcome.took_some:
                self._works()
            batch = self._still_to_write(thread, outcome, failures)
            tries = 0 if outcome.took_some else tries + 1
            if batch and (tries >= _TRIES or (tries and self._failing)):
                self._away(thread, outcome, batch)
                return
            if batch:
                await asyncio.sleep(_PAUSE * 2 ** max(0, tries - 1))

    def _still_to_write(
        self, thread: SinkThread, outcome: _Attempt, failures: Counter[Handed]
    ) -> list[Handed]:
        """What is left of a batch, without results that fail again and again while others are taken."""
        for handed in outcome.left:
            # Asked several times, for a sink may fail now and then.
            failures[handed] += outcome.took_some or failures[handed] > 0
            if failures[handed] >= _REFUSED_AFTER:
                self._refuse(thread, handed, outcome.cause)
        return [handed for handed in outcome.left if failures[handed] < _REFUSED_AFTER]

    async def _attempt(self, thread: SinkThread, batch: list[Handed], *, in_parts: bool) -> _Attempt:
        """Write a batch; settle what the sink takes, and what it refuses by name.

        With `in_parts` a batch over which the sink raises is written by halves, down to the results that fail
        alone; one that the sink says to refuse is always looked for.
        """
        outcome = _Attempt()
        parts, failures, told = [batch], 0, False
        while parts:
            part = parts.pop()
            error = await thread.call(partial(self._sink.write, [handed.evaluation for handed in part]))
            if error is None:
                outcome.took_some = told = True
                for handed in thread.claimed(part):
                    self._settle(handed, "written")
                continue
            failures += 1
            outcome.cause, outcome.words = _cause_of(error), error_words(error)
            meaning = _meaning_of(error)
            if meaning == "away" or (failures >= _BLIND and not told):
                outcome.left += chain(part, *parts)
                break
            named = meaning in ("refused", "late")
            if len(part) > 1 and (in_parts or named):
                half = len(part) // 2
                parts += [part[half:], part[:half]]
            elif named:
                told = True
                self._named(thread, part[0], meaning, outcome.cause)
            else:
                outcome.left += part
        return outcome

    def _named(self, thread: SinkThread, handed: Handed, meaning: str, cause: str) -> None:
        """The sink has said of one result that it does not take it, for good or for now."""
        if meaning == "late" and handed.kept:
            self._late_until = time.monotonic() + _LATE_PAUSE
            self._give_back(cause, thread.claimed([handed]))
        else:
            self._refuse(thread, handed, cause)

    def _refuse(self, thread: SinkThread, handed: Handed, cause: str) -> None:
        """The sink will never take this result."""
        self._warn(
            "refused", "the sink %r refuses a result: %s; later ones are only counted", self.name, cause
        )
        for claimed in thread.claimed([handed]):
            self._settle(claimed, "refused", cause)

    def _works(self) -> None:
        """The sink has taken something."""
        if self._failing and self._warn.over("away"):
            _log.warning("the sink %r takes results again", self.name)
        self._rest = _FIRST_REST

    def _away(self, thread: SinkThread, outcome: _Attempt, batch: list[Handed]) -> None:
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
        self._give_back(outcome.cause, [*thread.claimed(batch), *drained(self._waiting)])


def _cause_of(error: BaseException) -> str:
    """A word for what a sink raised, for counts."""
    if isinstance(error, TimeoutError):
        return "timeout"
    cause = error.cause if isinstance(error, SinkError) else None
    return cause if isinstance(cause, str) else type(error).__name__  # any class may say it is a SinkError


def _meaning_of(error: BaseException) -> Literal["refused", "late", "away", "unknown"]:
    """Whether an error is about results, or about the sink, so that writing less at a time would not help."""
    if isinstance(error, SinkError):
        return _MEANINGS.get(_cause_of(error), "away")
    is_away = isinstance(error, OSError | ConfigurationError) or not isinstance(error, Exception)
    return "away" if is_away else "unknown"
