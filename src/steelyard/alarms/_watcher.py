"""Alarms at work: turns in, states kept, messages out, whoever brings the turns."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, replace

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_words
from steelyard._internal.threads import DaemonExecutor
from steelyard._internal.typed import adapter, read
from steelyard.alarms._alarm import Alarm, bar_of, distinct
from steelyard.alarms._event import AlarmEvent, Range
from steelyard.alarms._store import AlarmStore, Notice, Transaction
from steelyard.alarms._targets import shown, tell
from steelyard.alarms._watch import State, Watch
from steelyard.errors import InvalidRecord, SteelyardError
from steelyard.scores import Evaluation

_log = SafeLogger("steelyard.alarms")
_HOLD = 60.0
"""Seconds for which a process that tells keeps a message to itself; longer than one attempt can take."""
# Also how late silence, or what another process left untold, is noticed at most.
_LONGEST_SLEEP = 5.0
DEFAULT_FILE = "steelyard-alarms.db"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlarmStatus:
    """Where an alarm stands."""

    alarm: Alarm
    """The alarm."""
    state: State
    """`learning` what is normal, `quiet` or `fallen`."""
    turns: int
    """Scored turns seen, ever."""
    target: float | None
    """The mean it holds turns against, in the metric's values; None while learning."""
    learnt: str
    """With `falls_by`: the mean that is taken for normal, and the turns it was learnt from."""
    now: Range | None
    """The mean since things may have changed; since the last change if nothing speaks for another."""
    before: Range | None
    """The mean until then; None if nothing speaks for a change."""
    since: float | None
    """Since when, as Unix time; more turns have to tell whether it is a change at all."""
    last_at: float | None
    """When the last turn was scored."""
    course: Sequence[tuple[float, float]]
    """When, and what a stake of 1 on a fall had become then, after a fall one on the recovery; at `bar` the
    alarm goes off."""
    bar: float
    """1 / alpha, or twice that where what is normal is learned."""
    messages: Sequence[Notice]
    """The last messages, newest first."""


class AlarmWatcher:
    """Takes scored turns, keeps what each alarm knows in a file, and reports what happened.

    One file may be shared by several processes: each turn is counted once, whoever brings it, and each event
    told once. Nothing here raises for what a target or the file does later; it is logged and tried again.
    """

    def __init__(
        self, alarms: Iterable[Alarm], *, file: str = DEFAULT_FILE, clock: Callable[[], float] = time.time
    ) -> None:
        """Open the file; nothing is started yet.

        Args:
            alarms: What to watch.
            file: The file with what alarms know; made if it does not exist.
            clock: The time, as Unix time.

        Raises:
            ConfigurationError: If the file cannot be used, or two alarms have one name.
        """
        self.alarms = distinct(alarms)
        self.canaries: Callable[[], str] | None = None
        """What probes with a known answer say of the judge at this moment, in words, where any are asked."""
        self.people: Callable[[Alarm], str] | None = None
        """What people's labels say of an alarm's metric at this moment, in words, where they are at hand."""
        self._store = AlarmStore(file)
        self._clock = clock
        self._warn = WarnOnce(_log)
        # The file knows targets only as they may be shown; addresses are secrets and stay in memory.
        self._targets = {shown(target): target for alarm in self.alarms for target in alarm.to}
        self._fallen: dict[tuple[str, str], bool] = {}
        self._under_way: set[Future[None]] = set()
        self._wake = threading.Event()
        self._stopped = False
        self._loop: DaemonExecutor | None = None
        self._pid = 0
        self._callers = DaemonExecutor(max(len(self._targets), 1), name="steelyard-alarm", spares=4)

    def take(
        self, evaluations: Sequence[Evaluation], *, source: str = "", position: int | None = None
    ) -> list[AlarmEvent]:
        """Take turns into account; returns what there is to tell, which is told in the background.

        Args:
            evaluations: Finished Evaluations, in the order in which they were finished.
            source: Where they were read from, if they were.
            position: How far that source has been read with them.

        Raises:
            sqlite3.Error: If the file cannot be written; nothing was taken then.
        """
        events: list[AlarmEvent] = []
        with self._store.transaction() as file:
            for alarm in self.alarms:
                watch = self._watch(file, alarm)
                told = [
                    self._with_more(alarm, event)
                    for one in evaluations
                    if (event := watch.take(alarm, one)) is not None
                ]
                self._put(file, alarm, watch, told)
                events += told
            if position is not None:
                file.put_position(source, position)
        if events:
            self._wake.set()
        return events

    @property
    def fallen(self) -> Mapping[tuple[str, str], bool]:
        """By alarm and metric: whether scores have fallen, as far as this process has seen."""
        return dict(self._fallen)

    def position(self, source: str) -> int | None:
        """How far a source has been read; None if it never was."""
        with self._store.transaction() as file:
            return file.position(source)

    def look(self) -> list[AlarmEvent]:
        """Notice silence."""
        events: list[AlarmEvent] = []
        if not any(alarm.silent_after for alarm in self.alarms):
            return events
        with self._store.transaction() as file:
            for alarm in self.alarms:
                watch = self._watch(file, alarm)
                event = watch.silence(alarm, self._clock())
                if event is not None:
                    self._put(file, alarm, watch, [event])
                    events.append(event)
        return events

    def status(self) -> list[AlarmStatus]:
        """Where each alarm stands."""
        found = []
        with self._store.transaction() as file:
            for alarm in self.alarms:
                watch = self._watch(file, alarm)
                now = watch.range_of(alarm, watch.normal if watch.target is None else watch.since)
                before = None if watch.target is None else watch.range_of(alarm, watch.before)
                if now is None:
                    # Nothing speaks for a change since the last one that was told: these are now's turns.
                    now, before = before, None
                found.append(
                    AlarmStatus(
                        alarm=alarm,
                        state=watch.state,
                        turns=watch.turns,
                        target=watch.shown_target(alarm),
                        learnt=watch.learnt,
                        now=now,
                        before=before,
                        since=watch.changed_at,
                        last_at=watch.last_at,
                        course=tuple(sorted(watch.course)),
                        bar=bar_of(alarm),
                        messages=file.messages(alarm.label),
                    )
                )
        return found

    def test(self) -> dict[str, str | None]:
        """Tell every target that this is a test; by target, what went wrong, or None."""
        outcome: dict[str, str | None] = {}
        for name, target in self._targets.items():
            alarm = next(one for one in self.alarms if target in one.to)
            event = AlarmEvent(
                alarm=alarm.label, kind="test", metric=alarm.metric, slice=alarm.slice, at=self._clock()
            )
            outcome[name] = self._attempt(target, event)
        return outcome

    def start(self) -> None:
        """Begin telling in the background, also what an earlier process left untold."""
        # A forked child has none of its parent's threads, and what they held stays held there.
        if self._loop is None or self._pid != os.getpid():
            self._pid, self._wake = os.getpid(), threading.Event()
            self._stopped = False
            self._loop = DaemonExecutor(name="steelyard-alarms")
            self._loop.submit(self._run)

    def close(self, timeout: float = 5.0) -> None:
        """Tell what is due, for at most so many seconds, and end; the rest stays in the file."""
        self._stopped = True
        self._wake.set()
        if self._loop is not None:
            self.tell(timeout=timeout)
            self._loop.shutdown()
        self._callers.shutdown()
        self._store.close()
        self._loop = None

    def tell(self, *, timeout: float = 30.0) -> None:
        """Tell what is due now, all targets at the same time."""
        try:
            with self._store.transaction() as file:
                due = file.claim(list(self._targets), self._clock(), hold=_HOLD)
        except Exception as error:  # noqa: BLE001 - the file may be gone or full
            self._warn("file", "alarms cannot be told: %s; it is tried again", error_words(error))
            return
        for message in due:
            attempt: Future[None] = self._callers.submit(self._tell_one, message)
            self._under_way.add(attempt)
            attempt.add_done_callback(self._under_way.discard)
        # Also for what another thread has begun: a process that ends in the middle has it told again.
        wait(set(self._under_way), timeout=timeout)

    def _tell_one(self, message: Notice) -> None:
        try:
            problem = self._attempt(self._targets[message.target], read(AlarmEvent, message.body))
        except InvalidRecord:
            problem = "unreadable"
        with self._store.transaction() as file:
            again = file.settle(message, self._clock(), problem)
        if problem is not None:
            _log.log(
                logging.WARNING if again else logging.ERROR,
                "alarm %r could not be told to %s: %s; %s",
                message.name,
                message.target,
                problem,
                "it is tried again" if again else "it is given up",
            )

    def _attempt(self, target: str, event: AlarmEvent) -> str | None:
        try:
            tell(target, event)
        except SteelyardError as error:
            return str(error)  # made here or in the targets: holds no address and nothing of a reply
        except Exception as error:  # noqa: BLE001 - the host's logging and exporters may raise anything
            return error_words(error)
        return None

    def _run(self) -> None:
        while not self._stopped:
            try:
                self.look()
                self.tell()
                with self._store.transaction() as file:
                    due = file.next_due(list(self._targets))
            except Exception as error:  # noqa: BLE001 - the file may be gone or full
                self._warn(
                    "file",
                    "the file of alarms cannot be used: %s; name another with alarm_file",
                    error_words(error),
                )
                due = None
            pause = _LONGEST_SLEEP if due is None else min(max(due - self._clock(), 0.0), _LONGEST_SLEEP)
            self._wake.wait(pause)
            # Cleared before the look, so that what comes during it is not slept over.
            self._wake.clear()
        # What was under way when the file was closed has opened it again.
        self._store.close()

    def _watch(self, file: Transaction, alarm: Alarm) -> Watch:
        stored = file.state(alarm.label)
        if stored is not None and stored.get("fingerprint") == alarm.fingerprint:
            try:
                return read(Watch, stored)
            except InvalidRecord:
                self._warn(alarm.label, "what alarm %r knew cannot be read; it starts anew", alarm.label)
        return Watch.start(alarm)

    def _with_more(self, alarm: Alarm, event: AlarmEvent) -> AlarmEvent:
        """What others know of a fall: probes of the judge, people who labelled turns."""
        if event.kind == "fell" and self.canaries is not None:
            event = replace(event, canaries=self.canaries())
        if self.people is not None and event.kind != "silent":
            try:
                event = replace(event, people=self.people(alarm))
            except Exception as error:  # noqa: BLE001 - a fall is told also where labels cannot be read
                self._warn("people", "labels were not looked at: %s", error_words(error))
        return event

    def _put(self, file: Transaction, alarm: Alarm, watch: Watch, events: Iterable[AlarmEvent]) -> None:
        now = self._clock()
        file.put_state(alarm.label, adapter(Watch).dump_python(watch, mode="json"), now)
        self._fallen[alarm.label, alarm.metric] = watch.state == "fallen"
        for event in events:
            for target in alarm.to:
                file.put_message(event.id, shown(target), alarm.label, asdict(event), now)
