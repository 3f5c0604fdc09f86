"""The Monitor: takes turns from the application and has them judged in the background.

`submit` is all that runs on the application's threads: a hash, a counter and an append. One daemon thread
with an event loop of its own, started with the first turn, does the rest: selection, masking, judging,
writing.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

from steelyard._internal.forks import in_children
from steelyard._internal.lifecycle import attend
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.native import RLock
from steelyard._internal.text import error_place
from steelyard.calibration import Calibration
from steelyard.diagnosis import Experiments
from steelyard.errors import ConfigurationError, SkipReason
from steelyard.judge import LocalJudge
from steelyard.metrics import Metric
from steelyard.online._budget import Budget
from steelyard.online._delivery import Callback, DecisionCallback, Decisions, Notifier
from steelyard.online._options import Canaries, Mask, options_from
from steelyard.online._run import MonitorRun, Stats, breakers_of, cache_hits_of
from steelyard.online._selection import Selection, key_of, sampling_position
from steelyard.online.queue._spool_file import SpoolSettings
from steelyard.online.queue._turns import Queued
from steelyard.questions import Embedder, Fuse, Judge
from steelyard.record import Record
from steelyard.recording import Draft, check_function, is_unrecorded
from steelyard.sinks import MonitorAware, Sink

_log = SafeLogger("steelyard.online")
_sharing = RLock()
_shared: Monitor | None = None


class Monitor:
    """Has RAG turns judged while the application runs.

    Without arguments it works at once: the local judge, all turns, results into `steelyard.db` and, where
    OpenTelemetry is set up, onto the trace. Nothing it does ever raises into the application or holds it up.

    Example:
        >>> monitor = Monitor(metrics=[], sinks=[])
        >>> monitor.submit(Record(question="Why?", answer="Because."))
        >>> monitor.flush(5)
        0
        >>> monitor.stats().evaluated
        1
        >>> monitor.close()
        0
    """

    def __init__(
        self,
        *,
        metrics: Sequence[Metric | str] | None = None,
        judge: Judge | str | None = None,
        screen: Judge | str | None = None,
        screen_rate: float | None = None,
        screen_floor: float | None = None,
        screen_file: str | None = None,
        embedder: Embedder | None = None,
        sample_rate: float | None = None,
        selection: Selection | None = None,
        sinks: Sequence[Sink | str] | None = None,
        mask: Mask | None = None,
        mask_timeout: float | None = None,
        store_content: bool | None = None,
        score_guesses: bool | None = None,
        user_key: str | None = None,
        sample_key: str | None = None,
        fuse: Fuse | None = None,
        concurrency: int | None = None,
        deadline: float | None = None,
        sink_timeout: float | None = None,
        max_queue: int | None = None,
        max_queue_bytes: int | None = None,
        exit_timeout: float | None = None,
        throttle: float | None = None,
        budget: Budget | None = None,
        spool: str | Path | SpoolSettings | None = None,
        calibration: str | Path | Calibration | None = None,
        canaries: Canaries | float | None = None,
        experiments: Experiments | None = None,
    ) -> None:
        """Check the options, and load what the local judge needs; nothing is started yet.

        What is not given here comes from `STEELYARD_*` environment variables, then from `steelyard.toml`,
        then from the defaults named below; `steelyard config` shows the outcome.

        Args:
            metrics: What to score turns with, as objects or names (`["faithfulness"]`); the judge's default
                suite where none are given. An empty list is legal: turns are recorded, accounted for and
                delivered, and nothing is scored.
            judge: Who answers: a Judge, or a name such as `"openai:gpt-4o-mini"`; the local judge by default.
                One that is not local is put behind a `CircuitBreaker`, unless it brings one.
            screen: A cheaper judge, such as `"local"`, that scores every turn; the judge then scores the
                share of them that `sample_rate` says, most where the screen tells least. Its Scores are in
                `Evaluation.screen`, and make the judge's figures more exact.
            screen_rate: With a screen: the share of turns that it scores.
            screen_floor: With a screen: the share of its own rate that every turn keeps, however sure the
                screen is of it.
            screen_file: With a screen: the file that keeps what it has learnt from the judge; empty: it
                learns nothing.
            embedder: Who embeds; local static vectors by default.
            sample_rate: The share of turns to judge, by hash of the trace id; all by default.
            selection: Which turns to judge, in full: rules, suspicion, rates for single metrics.
            sinks: Where results go, as objects or names (`["jsonl:scores.jsonl"]`); by default `steelyard.db`
                in the working directory and, where OpenTelemetry is installed, the trace. An empty list: only
                to `on_evaluation` callbacks.
            mask: Takes a Record and returns it without what nobody may see; called in the background, before
                judge, sinks and callbacks. Where it raises, the turn is dropped.
            mask_timeout: Seconds that a mask may take.
            store_content: Whether results carry the turn's texts; without, they have numbers and positions.
            score_guesses: Whether turns are judged by passages that were guessed from a prompt.
            sample_key: The key of the hash that picks turns; empty: callers can choose what is picked.
            user_key: The key under which users are hashed; empty: who asked is not stored.
            fuse: How questions share requests: `view`, `record` or `off`.
            concurrency: Turns judged at the same time.
            deadline: Seconds for judging one turn.
            sink_timeout: Seconds for one write to a sink.
            max_queue: Turns that may wait; the newest is dropped if there are more.
            max_queue_bytes: Roughly how many bytes they may keep alive.
            exit_timeout: Seconds that `close` and the end of the program wait for what is pending.
            throttle: Turns judged per minute at most; 0 for no limit.
            budget: What judging may use up per hour and day.
            spool: What keeps picked turns until they are judged and delivered, whatever crashes: a file, or
                the address of a broker (`nats://HOST:4222`, `amqp://HOST`) that several machines share.
            calibration: What people's labels say of the judge's scores, or the file of it that
                `steelyard calibrate` wrote: scores carry calibrated values beside their own.
            canaries: Probes with a known answer, asked beside turns to notice when the judge changes:
                `Canaries`, or their share, such as .02. None are asked by default.
            experiments: How bad turns are answered again in the background, to see what they suffer from:
                `Experiments(replay=...)`. What was tried is in `Evaluation.diagnosis`. None by default.

        Raises:
            ConfigurationError: If an option cannot mean what was given.
        """
        self.options = options_from(locals())
        """The options in force: those given in code, those of settings, and defaults."""
        self._warm()
        self._ceiling = self.options.selection.ceiling
        if self.options.screened:
            self._ceiling = max(self._ceiling, self.options.screen_rate)
        self._notifier, self._decisions = Notifier(), Decisions()
        self._warn = WarnOnce(_log)
        self._inherited: list[MonitorRun] = []
        self._begin()
        attend(self)
        self._introduce()

    def submit(self, turn: Record | Draft) -> None:
        """Take a finished turn. Returns within microseconds and never raises.

        What Steelyard does itself (a judge that is a recorded chain, say) is not taken.
        """
        try:
            self._submit(turn)
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            self._run.inbox.skip("unreadable")
            _complain(self._warn, turn, error)

    def _submit(self, turn: Record | Draft) -> None:
        if is_unrecorded():
            return
        run = self._run
        # A child that was forked without Python's own hook (by a C library) is found here.
        if run.pid != os.getpid():
            self.after_fork()
            run = self._run
        inbox = run.inbox
        position: float | None = None
        reason: SkipReason | None = None
        # At a rate of 1 every position is below it, and the hash need not be computed here.
        if self._ceiling < 1:
            position = sampling_position(key_of(turn), self.options.sample_key)
            reason = "sampled_out" if position >= self._ceiling else None
        if reason is None and (inbox.closed or inbox.full):
            # Refused unweighed: a full queue is when the application has least time.
            reason = "closed" if inbox.closed else inbox.full_because
        if reason is None:
            inbox.put(Queued(turn, position))
        else:
            inbox.skip(reason)
            self._decisions.tell(turn, reason)

    def start(self) -> None:
        """Begin at once rather than with the first turn: on what an earlier process left in the spool."""
        self._run.start()

    def feedback(self, record_id: str, value: bool | float) -> None:
        """Pass on what the user said about a turn: True or more than 0 is good, the rest is bad.

        It goes into the turn's metadata as `feedback`, if the turn is still to be judged. With
        `Selection(suspicion=...)`, a disliked turn counts as suspicious, also afterwards: one that was passed
        over is taken up again, and one that was judged at a lower rate is judged again, so that its result
        carries the right probability. That reaches back a thousand turns, and not into a spool. Never raises.
        """
        try:
            self._run.inbox.take_feedback(record_id, value)
        except Exception as error:  # noqa: BLE001 - nothing may reach the application
            _log.debug("feedback was not taken: %s", error_place(error))

    def flush(self, timeout: float = 5.0) -> int:
        """Wait until every turn taken so far is judged and written, at most this many seconds.

        Call it at the end of a serverless invocation, and before reading results in a script.

        Returns:
            What is not written: turns that are still pending, and results that a sink has lost since the last
            flush; 0 if all went through. Turns in a spool that has failed are counted, and not waited for.
        """
        return self._run.flush(timeout)

    def close(self, timeout: float | None = None) -> int:
        """Flush, then stop; turns that come later are skipped. The end of the program does this, too.

        Args:
            timeout: Seconds to wait for what is pending; `exit_timeout` by default.

        Returns:
            How many turns were given up (`abandoned`).
        """
        return self._run.close(self.options.exit_timeout if timeout is None else timeout)

    def stats(self) -> Stats:
        """Where all turns have got to, at this moment."""
        run = self._run
        counts, (queued, queued_bytes) = run.inbox.counts(), run.inbox.waiting
        return Stats(
            **{field.name: getattr(counts, field.name) for field in fields(counts)},
            queued=queued,
            queued_bytes=queued_bytes,
            sinks=run.delivery.sinks,
            restarts=run.restarts,
            callbacks_missed=self._notifier.missed,
            usage=run.delivery.usage,
            spool=run.worker.spool.counts() if run.worker.spool else None,
            fallback=run.worker.fallback.file.counts() if run.worker.fallback else None,
            breakers=breakers_of(self._judges()),
            cache_hits=cache_hits_of(self._judges()),
            canaries=run.worker.canaries.reading if run.worker.canaries else None,
            screen=run.worker.screening.reading if run.worker.screening else None,
            replays=run.worker.laboratory.replays if run.worker.laboratory else 0,
        )

    def ask_canaries(self, count: int = 100) -> None:
        """Ask so many canaries now, in the background, e.g. when scores have fallen: was it the judge?

        `stats().canaries.cause_of_fall` says so once `stats().canaries.waiting` is 0.

        Raises:
            ConfigurationError: If this Monitor has no canaries.
        """
        if self.options.canaries is None:
            raise ConfigurationError("this Monitor asks no canaries; give it canaries=.02")
        self._run.ask_canaries(count)

    def on_evaluation(self, callback: Callback) -> Callable[[], None]:
        """Have every finished Evaluation passed to a function, in a background thread of its own.

        It may be slow or raise; then it misses some, and nothing else happens.

        Returns:
            A function that ends it.

        Raises:
            ConfigurationError: If it is not a function, or one that would have to be awaited.
        """
        check_function("an on_evaluation callback", callback)
        return self._notifier.subscribe(callback)

    def on_decision(self, callback: DecisionCallback) -> Callable[[], None]:
        """Have a function hear of every turn that is decided not to be judged, at once.

        It is called with the turn's trace and the reason, in the thread that decided, which may be the
        application's: it must only take note, and not call this Monitor. The reason is one of those of
        `Stats.skipped` or `Stats.dead`, or `spooled` where another process judges the turn.

        Returns:
            A function that ends it.

        Raises:
            ConfigurationError: If it is not a function, or one that would have to be awaited.
        """
        check_function("an on_decision callback", callback)
        return self._decisions.subscribe(callback)

    def after_fork(self) -> None:
        """Begin anew in a forked child: the parent keeps its turns, its thread and its counts."""
        # A SQLite connection must not be closed in a child, not even by the garbage collector.
        self._inherited.append(self._run)
        self._notifier.begin()
        self._begin()

    def _begin(self) -> None:
        self._run = MonitorRun(self.options, self._notifier)
        self._run.inbox.decided = self._decisions.tell
        self._run.inbox.complain = partial(_complain, self._warn)
        # A Monitor that nobody refers to any more must not keep its thread; at exit `close` comes first.
        weakref.finalize(self, self._run.dismiss).atexit = False

    def _warm(self) -> None:
        """Load now what the first turn would: a tokenizer takes 0.1 s, in which no other thread can run."""
        if self.options.metrics and self.options.judges:
            for judge in self._judges():
                if isinstance(judge, LocalJudge):
                    judge.warm()

    def _introduce(self) -> None:
        for sink in self.options.sinks:
            if isinstance(sink, MonitorAware):
                try:
                    sink.observe(self)
                except Exception as error:  # noqa: BLE001 - a sink may raise anything
                    _log.warning(
                        "the sink %r does not observe its Monitor: %s; correct its observe()",
                        sink.name,
                        error_place(error),
                    )

    def _judges(self) -> list[Judge]:
        judges = [self.options.judge, self.options.screen, *(metric.judge for metric in self.options.metrics)]
        return [judge for judge in judges if judge is not None]


def _complain(warn: WarnOnce, turn: object, error: Exception) -> None:
    kind = type(turn).__name__
    told = "%r is not a turn: %s; submit a Record; it is skipped, as later ones are"
    warn("unreadable", told, kind, error_place(error))


def default_monitor() -> Monitor:
    """The Monitor of recorders that were given none: one for the whole process, made at first use."""
    global _shared
    with _sharing:
        if _shared is None:
            _shared = Monitor()
        return _shared


def _after_fork() -> None:
    """Another thread may have been making it in the parent."""
    global _sharing
    _sharing = RLock()


in_children(_after_fork)
