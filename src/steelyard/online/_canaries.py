"""Canaries: probes with a known answer among the judge's requests, which tell when the judge changes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from steelyard._internal.files import replace_file
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.native import RLock
from steelyard._internal.text import error_place, error_words
from steelyard.judge.middleware import uncached
from steelyard.online._options import LEAST, Canaries, MonitorOptions
from steelyard.probing import AskedProbes, Probe, ProbeSet, ask, load_probes
from steelyard.questions import Fuse, Judge
from steelyard.results.queries import StoredCanaries
from steelyard.scores import Usage
from steelyard.stats import ChangeAlarm, ConfidenceSequence, flip_probability

ENOUGH = 100
"""Answers within which one wrong verdict in ten is found, so that none found means the judge is the same."""
CanaryState = Literal["learning", "watching", "changed", "unusable"]
_SCHEMA = 2
_LARGEST = 1024 * 1024
_log = SafeLogger("steelyard.online")
_ROUNDS = 4
"""How often a probe is asked while learning: what chance does must be known to be told from a change."""
_CONFIRMATIONS = 2  # a slip at a temperature above 0 seldom comes three times
_MOST_UNANSWERED = 0.2  # of a judge with an outage nothing can be learnt
# A judge that is away is asked again after this, and not at every turn.
_PAUSE = 60.0
_LEARNERS = 4  # learning must not crowd out the turns
_MOST_WAITING = 10_000  # after an outage the canaries that were due are not all made up for


@dataclass(frozen=True, kw_only=True, slots=True)
class CanaryReading(StoredCanaries):
    """What the canaries say of the judge, at one moment."""

    state: CanaryState
    tolerated: float
    """Share of wrong answers that is put down to chance; larger for a judge that wavers."""
    waiting: int
    """Canaries that are to be asked at once and have not been answered yet."""
    checked: int
    """Answers since canaries were last asked for with `Monitor.ask_canaries()`."""
    unanswered: int
    """Probes without an answer, by whatever cause; they count neither as right nor as wrong."""
    usage: Usage
    """What the probes cost; not part of `Stats.usage` and of no budget."""

    @property
    def cause_of_fall(self) -> Literal["judge", "application", "unknown"]:
        """Whose doing it is if scores have fallen.

        `application` only where 100 canaries were answered since they were asked for, and show no change: ask
        with `Monitor.ask_canaries()` when scores fall, and read this once `waiting` is 0.
        """
        if self.state == "changed":
            return "judge"
        if self.state == "watching" and not self.waiting and self.checked >= ENOUGH:
            return "application"
        return "unknown"


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What was learned of one judge."""

    judge: str
    """Its name."""
    prompt_version: str
    """Version of its wording."""
    probe_set: str
    """Hash of the probe set."""
    probes: tuple[str, ...]
    """Ids of the probes that it answered rightly every time."""
    repeated: int
    """Answers to probes that it had answered rightly until then."""
    wavered: int
    """Of those, wrong ones: what chance does."""

    def is_of(self, judge: Judge, probes: ProbeSet) -> bool:
        """Whether it was learned of this judge, with these probes."""
        there = {probe.id for probe in probes.probes}
        return (
            (self.judge, self.prompt_version, self.probe_set)
            == (judge.name, judge.prompt_version, probes.sha256)
        ) and there.issuperset(self.probes)

    def save(self, path: str | Path) -> None:
        """Write it down; where that fails it is learned anew after a restart, and said."""
        data = {"steelyard_canaries": _SCHEMA, **self.__dict__}
        try:
            replace_file(path, json.dumps(data, indent=1) + "\n")
        except OSError as error:
            _log.warning(
                "canaries cannot be kept in %r: %s; name a file that can be written",
                str(path),
                error_words(error),
            )

    @classmethod
    def load(cls, path: str | Path) -> Self | None:
        """What was written down; None where nothing was, or where it cannot be read, which is said."""
        try:
            with Path(path).open("rb") as file:
                data = json.loads(file.read(_LARGEST))
            if data.pop("steelyard_canaries") != _SCHEMA:
                raise ValueError("another schema")
            found = cls(**{**data, "probes": tuple(map(str, data["probes"]))})
            if not 0 <= found.wavered <= found.repeated:
                raise ValueError("wavered is out of range")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            _log.warning("%r holds no canaries (%s); they are learned anew", str(path), type(error).__name__)
            return None
        return found


def candidates(probes: Sequence[Probe], count: int) -> list[Probe]:
    """Probes to try: as many true as false ones, of every kind in turn, none that speaks to a judge."""
    found: list[Probe] = []
    for expected in (True, False):
        by_kind: dict[str, list[Probe]] = {}
        for probe in sorted(probes, key=lambda one: hashlib.sha256(one.id.encode()).digest()):
            if probe.expected is expected and not probe.address and probe.asks == "supported":
                by_kind.setdefault(probe.kind, []).append(probe)
        queues = list(by_kind.values())
        half = [one[place] for place in range(max(map(len, queues))) for one in queues if place < len(one)]
        found += half[: (count + expected) // 2]
    return found


class CanaryWatch:
    """Asks canaries one by one, each in a request of its own; everything runs in the background loop."""

    def __init__(self, options: Canaries, judge: Judge, fuse: Fuse) -> None:
        self._options = options
        # From a cache a judge that has changed would go on answering as before.
        self._judge = uncached(judge)
        self._fuse: Fuse = fuse
        self._random = random.Random()
        self._warn = WarnOnce(_log)
        self._called: asyncio.Event | None = None
        self._lock = RLock()
        self._waiting = 0
        self._state: CanaryState = "learning"
        self._probes: Sequence[Probe] = ()
        self._alarm = ChangeAlarm(repeated=0, wavered=0, alpha=options.alpha)
        self._sequence = ConfidenceSequence()
        self._asked = self._right = self._unanswered = self._checked = self._checked_wrong = 0
        self._before = (0, 0)
        """Wrong answers, and all, from before the check that is under way."""
        self._checking = self._was_called_for = False
        self._changed_at: float | None = None
        self._usage = Usage()

    @property
    def reading(self) -> CanaryReading:
        return CanaryReading(
            judge=self._judge.name,
            state=self._state,
            probes=len(self._probes),
            asked=self._asked,
            right=self._right,
            low=self._sequence.low,
            high=self._sequence.high,
            tolerated=self._alarm.tolerated,
            waiting=self._waiting,
            checked=self._checked,
            unanswered=self._unanswered,
            changed_at=self._changed_at,
            usage=self._usage,
        )

    def turn_judged(self) -> None:
        """A turn was judged: perhaps it is time for a canary."""
        if self._random.random() < self._options.share:
            self.expect(1)
            self.wake()
        elif self._state == "learning":
            self.wake()

    def expect(self, count: int, *, ask: bool = False) -> None:
        """So many canaries are to be asked; from any thread, and `wake` in the loop thereafter."""
        with self._lock:
            if ask:
                self._checked = self._checked_wrong = 0
                self._checking = self._was_called_for = True
            self._waiting = min(self._waiting + count, _MOST_WAITING)

    def wake(self) -> None:
        """Look whether there is something to ask."""
        if self._called is not None:
            self._called.set()

    async def run(self) -> None:
        """Learn, then ask what is called for, until cancelled. It may be run again, in another loop."""
        self._called = asyncio.Event()
        if self._waiting:
            self._called.set()
        while True:
            await self._called.wait()
            try:
                await self._step()
            except BaseException as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                # Code of the user's may raise anything; it ends no more than this canary.
                self._unanswered += 1
                self._warn(type(error).__name__, "a canary could not be asked: %s", error_place(error))
            if self._state == "learning":  # the judge is not there: not every turn is to find that out
                await asyncio.sleep(_PAUSE)
            elif not self._waiting:
                self._called.clear()

    async def _step(self) -> None:
        if self._state == "learning":
            await self._learn()
        elif self._state == "unusable":
            self._waiting = 0
        elif self._waiting:
            try:
                await self._ask_one()
            finally:
                with self._lock:
                    self._waiting = max(self._waiting - 1, 0)
                    done = self._checking and not self._waiting
                    self._checking = self._checking and not done
            if done:
                self._compare()
            if done and self.reading.cause_of_fall == "application":
                _log.warning(
                    "the judge %r answers probes as before, %d of %d rightly: if scores have fallen, it was "
                    "not the judge",
                    *(self._judge.name, self._right, self._asked),
                )

    async def _learn(self) -> None:
        """Find out which probes the judge answers reliably, or remember it."""
        # Read in a thread: it is a file, and the loop serves turns meanwhile.
        known = await asyncio.to_thread(load_probes)
        path = self._options.file
        reference = None if path is None else await asyncio.to_thread(Reference.load, path)
        if reference is not None and not reference.is_of(self._judge, known):
            _log.info("canaries are learned anew: judge, wording or probes are not those of %r", str(path))
            reference = None
        if reference is None:
            reference = await self._try_out(candidates(known.probes, self._options.probes), known.sha256)
            if reference is not None and path is not None:
                await asyncio.to_thread(reference.save, path)
        if reference is None:
            return
        by_id = {probe.id: probe for probe in known.probes}
        self._probes = [by_id[name] for name in reference.probes]
        self._alarm = ChangeAlarm(
            repeated=reference.repeated, wavered=reference.wavered, alpha=self._options.alpha
        )
        self._state = "watching"

    async def _try_out(self, probes: Sequence[Probe], probe_set: str) -> Reference | None:
        """Ask each probe, and those answered rightly again and again."""
        kept: Sequence[Probe] = probes
        repeated = wavered = 0
        for number in range(_ROUNDS):
            answered = [given for given in (await self._put(kept)).given if given.value is not None]
            if len(kept) - len(answered) > _MOST_UNANSWERED * len(kept):
                self._warn("silent", "the judge answers few canaries; they are tried again later")
                return None
            kept = [given.probe for given in answered if given.right]
            repeated += len(answered) if number else 0
            wavered += len(answered) - len(kept) if number else 0
        if len(kept) < LEAST:
            self._state = "unusable"
            self._warn(
                "unusable",
                "the judge %r answers only %d of %d probes rightly every time: canaries say nothing "
                "about it; take a better judge, or leave canaries out",
                *(self._judge.name, len(kept), len(probes)),
            )
            return None
        return Reference(
            judge=self._judge.name,
            prompt_version=self._judge.prompt_version,
            probe_set=probe_set,
            probes=tuple(probe.id for probe in kept),
            repeated=repeated,
            wavered=wavered,
        )

    async def _put(self, probes: Sequence[Probe]) -> AskedProbes:
        """Put probes to the judge, each by itself as later on: company may change an answer."""
        slots = asyncio.Semaphore(_LEARNERS)

        async def one(probe: Probe) -> AskedProbes:
            async with slots:
                asked = await ask(self._judge, [probe], fuse=self._fuse)
            self._usage += asked.usage
            self._unanswered += sum(given.value is None for given in asked.given)
            return asked

        found = await asyncio.gather(*map(one, probes))
        return AskedProbes(given=tuple(given for asked in found for given in asked.given), usage=Usage())

    async def _ask_one(self) -> None:
        probe = self._probes[self._random.randrange(len(self._probes))]
        (given,) = (await self._put([probe])).given
        if given.value is None:
            return
        confirmed = not given.right and await self._is_wrong_again(probe)
        if self._was_called_for and not self._checked:
            self._before = self._alarm.settled
        self._asked += 1
        self._checked += self._was_called_for
        self._checked_wrong += self._was_called_for and not given.right
        self._right += given.right
        self._sequence.add(float(given.right))
        if self._alarm.add(given.right, confirmed=confirmed):
            self._has_changed(self._asked - self._right, self._asked)

    def _compare(self) -> None:
        """Hold the canaries that were called for against those of before: one look sees more than many."""
        if self._state != "watching" or self._checked < ENOUGH:
            return
        wrong, before = self._before
        chance = flip_probability(
            wrong=self._checked_wrong, answers=self._checked, wrong_before=wrong, before=before
        )
        if chance <= self._options.alpha:
            self._has_changed(self._checked_wrong, self._checked)

    def _has_changed(self, wrong: int, answers: int) -> None:
        if self._changed_at is not None:
            return
        self._changed_at, self._state = time.time(), "changed"
        _log.warning(
            "the judge %r has changed: %d of its last %d answers were wrong, to probes that it answered "
            "rightly before; scores before and after are not comparable",
            *(self._judge.name, wrong, answers),
        )

    async def _is_wrong_again(self, probe: Probe) -> bool:
        """Whether a wrong answer is not a slip: the judge gives it each time."""
        again = (await self._put([probe] * _CONFIRMATIONS)).given
        return all(given.value is not None and not given.right for given in again)


def canaries_of(options: MonitorOptions) -> CanaryWatch | None:
    if options.canaries is None or options.judge is None:
        return None
    return CanaryWatch(options.canaries, options.judge, options.fuse)
