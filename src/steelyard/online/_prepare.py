"""Preparing a turn: build it, pick it, mask it; and what its results are held against, and rid of."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from steelyard._internal.bounded import BoundedDict
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place, is_date
from steelyard._internal.threads import DaemonExecutor, ExitInThread
from steelyard.errors import SkipReason
from steelyard.metrics import Metric, held_against
from steelyard.online._budget import BudgetControl
from steelyard.online._options import Mask, MonitorOptions
from steelyard.online._selection import Decision, key_of, sampling_position
from steelyard.online.queue._turns import Closed, Feedback, Queued, Selected, size_of
from steelyard.record import Record, Timings, with_hashed_user
from steelyard.results import KnowsEarlierScores
from steelyard.scores import Evaluation, Evidence, Score, Verdict
from steelyard.sinks import Sink

_log = SafeLogger("steelyard.online")
PICKED_FOR = "steelyard.picked_for"
"""The metadata entry that names the rules and signs by which a turn was picked, where there are any."""
# Two recorders tell of a turn within seconds; ten thousand ids are some minutes of a busy one.
_REMEMBERED = 10_000
_NOT_JUDGED: Mapping[str, SkipReason] = {
    "error": "status_error",
    "cancelled": "status_cancelled",
    "interrupted": "status_interrupted",
}
_SPANS = "opentelemetry"
_COMPARED = 1000


class Masker:
    """Applies the user's mask in threads of its own, so that a slow one holds up nothing but itself."""

    def __init__(self, mask: Mask | None, *, timeout: float) -> None:
        self._mask = mask
        self._timeout = timeout
        self._executor: DaemonExecutor | None = None
        self._warn = WarnOnce(_log)

    def start(self) -> None:
        """Start the threads; not earlier, since a fork would leave them behind, and not at exit."""
        if self._mask is not None and self._executor is None:
            self._executor = DaemonExecutor(2, name="steelyard-mask", spares=8)
            self._executor.start()

    async def apply(self, record: Record) -> Record | None:
        """The masked Record; None where the mask failed, and then nothing of the content may be used."""
        if self._mask is None:
            return record
        self.start()
        assert self._executor is not None
        try:
            async with asyncio.timeout(self._timeout):
                masked = await self._executor.run(self._mask, record)
            if isinstance(masked, Record):
                # When it happened says nothing of what was said, and a chart without it would be wrong.
                return masked.replace(
                    id=record.id, trace=record.trace, timings=masked.timings or record.timings
                )
            problem = f"returned {type(masked).__name__} instead of a Record"
        except TimeoutError:
            problem = f"took longer than {self._timeout:g} s"
        except Exception as error:  # noqa: BLE001 - the user's function may raise anything
            raised = error.__cause__ if isinstance(error, ExitInThread) else error
            problem = f"raised {error_place(raised or error)}"
        self._warn(
            "mask",
            "the mask %s; such turns are not judged (skipped as 'mask_failed'); "
            "correct it, or raise mask_timeout",
            problem,
            level=logging.ERROR,
        )
        return None

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None


def without_content(evaluation: Evaluation) -> Evaluation:
    """The same Evaluation without any text of the turn: no record, no quotations, no words of judges."""
    scores, screen = (tuple(map(_bare_score, part)) for part in (evaluation.scores, evaluation.screen))
    return replace(evaluation, record=None, scores=scores, screen=screen)


def _bare_score(score: Score) -> Score:
    return replace(score, explanation="", verdicts=tuple(map(_bare_verdict, score.verdicts)))


def _bare_verdict(verdict: Verdict) -> Verdict:
    evidence = tuple(Evidence(context=e.context, start=e.start, end=e.end) for e in verdict.evidence)
    return replace(verdict, about="", reason="", evidence=evidence)


class Preparer:
    """Builds, decides and masks; runs in the background loop."""

    def __init__(
        self, options: MonitorOptions, *, masker: Masker, budget: BudgetControl, feedback: Feedback
    ) -> None:
        self._options = options
        self._selection = options.selection
        self._masker = masker
        self._budget = budget
        self._feedback = feedback
        self._screen_rate = options.screen_rate if options.screened else None
        self._latest: BoundedDict[str, None] = BoundedDict(max_items=_REMEMBERED)
        self._recorders = DuplicateRecorderCheck()

    async def prepare(self, item: Queued) -> Selected | Closed:
        """What to do with a turn. Whatever a user's draft, rule or mask raises comes out as it is."""
        record = item.turn if isinstance(item.turn, Record) else item.turn.build()
        if record is None:
            return Closed("skipped", "not_rag")
        record = _dated(record, item.taken_at)
        position = item.sampling_position
        if position is None:
            position = sampling_position(key_of(item.turn), self._options.sample_key)
        decision = self._selection.decide(record, disliked=self._feedback.disliked(record.id))
        if decision.skip:
            return Closed("skipped", decision.skip)
        requeue = self._worth_keeping(item, record, position, decision)
        if position >= max(decision.rate, self._screen_rate or 0.0) and not decision.forced:
            return Closed("skipped", "sampled_out", requeue)
        # After selection: a failed turn that sampling leaves out counts as left out.
        if (reason := self._unfit(record, item)) is not None:
            return Closed("skipped", reason)
        return await self._admit(record, position, decision, requeue)

    def _unfit(self, record: Record, item: Queued) -> SkipReason | None:
        """Why a picked turn cannot be judged, or need not be once more."""
        if (reason := _NOT_JUDGED.get(record.status)) is not None:
            return reason
        if self._options.metrics and all(metric.missing(record) for metric in self._options.metrics):
            return "missing_input"
        return "duplicate" if record.id in self._latest and not item.requeued else None

    async def _admit(
        self, record: Record, position: float, decision: Decision, requeue: Queued | None
    ) -> Selected | Closed:
        """Hold a picked turn against throttle and budget, and make it safe to look at."""
        # With a screen turns come that nobody wants judged: they tell nothing of how many are wanted.
        wanted = decision.forced or position < decision.rate
        # The budget thins by lowering the rate, and the rate that is stored is the lowered one.
        rate = 1.0 if decision.forced else decision.rate * self._budget.share(arrived=wanted)
        screened = 0.0 if self._screen_rate is None else max(rate, self._screen_rate)
        if not self._is_picked(position, rate, screened):
            return Closed("skipped", "sampled_out", requeue)
        if (reason := self._reserved(record.id, decision, wanted=wanted and position < rate)) is not None:
            return Closed("skipped", reason)
        # Before the mask, which takes its time: an equal turn may come meanwhile.
        self._latest[record.id] = None
        try:
            masked = await self._masker.apply(record)
        # Whatever ends it, a cancellation too: the turn must be able to come again.
        except BaseException:
            self.undo(record.id)
            raise
        if masked is None:
            self.undo(record.id)
            return Closed("skipped", "mask_failed")
        # With the record as it came: a mask may change what the two recorders are told apart by.
        self._recorders.look(record)
        masked = with_hashed_user(masked, self._options.user_key)
        metadata = self._with_feedback(masked, decision)
        # The same mapping where nothing was added, so that most turns are not copied.
        if metadata is not masked.metadata:
            masked = masked.replace(metadata=metadata)
        return Selected(masked, position, rate, requeue, screened)

    def _reserved(self, record_id: str, decision: Decision, *, wanted: bool) -> SkipReason | None:
        """Set aside what judging a turn uses; or the reason why it cannot be judged."""
        if self._screen_rate is None:
            return self._budget.reserve(record_id, forced=decision.forced)
        reason = self._budget.reserve(record_id, forced=decision.forced) if wanted else None
        # Which turns are judged is known once the screen has seen them; so only the throttle counts here.
        if not decision.forced:
            self._budget.hand_over(record_id)
        return reason

    def _is_picked(self, position: float, rate: float, screened: float) -> bool:
        """Whether a screen or any metric scores the turn."""
        if self._screen_rate is not None:
            return position < screened
        names = [metric.name for metric in self._options.metrics]
        if 0 < rate <= position:
            return False
        return not names or bool(self._selection.metrics_for(position, rate, names))

    def undo(self, record_id: str) -> None:
        """A picked turn does not get into the queue now, and may come again."""
        self._budget.release(record_id)
        self._latest.pop(record_id, None)

    def _worth_keeping(
        self, item: Queued, record: Record, position: float, decision: Decision
    ) -> Queued | None:
        """The turn as it would be taken up requeue, if the user's dislike could still change its rate."""
        suspicion = self._selection.suspicion
        if self._options.spool is not None or suspicion is None or item.requeued or decision.forced:
            return None
        # Feedback can only raise the rate to the suspicious one; beyond that it changes nothing.
        if not max(position, decision.rate) < suspicion.rate:
            return None
        return Queued(record, position, size_of(record), requeued=True)

    def _with_feedback(self, record: Record, decision: Decision) -> Mapping[str, object]:
        extra: dict[str, object] = dict(self._feedback.known(record.id))
        if decision.reasons:
            extra[PICKED_FOR] = list(decision.reasons)
        return {**record.metadata, **extra} if extra else record.metadata


def _dated(record: Record, taken_at: float) -> Record:
    """The record with a time: that of its recording, if nothing says when it began."""
    if not isinstance(record.timings, Timings):
        return record.replace(timings=Timings(started_at=taken_at))
    if not is_date(record.timings.started_at):
        return record.replace(timings=replace(record.timings, started_at=taken_at))
    return record


class DuplicateRecorderCheck:
    """Warns, once, that a framework's recorder and the span processor record the same turns.

    They need not agree on ids, not even on the trace, so question and answer tell.
    """

    def __init__(self) -> None:
        self._latest: BoundedDict[int, str] = BoundedDict(max_items=_COMPARED)
        self._warn = WarnOnce(_log)

    def look(self, record: Record) -> None:
        """Compare a turn with the latest thousand."""
        framework = record.trace.framework if record.trace else None
        if not framework or not record.answer:
            return
        key = hash((record.question, record.answer))
        other = self._latest.setdefault(key, framework)
        if other != framework and _SPANS in (other, framework):
            self._warn(
                "twice",
                "a turn was recorded from its spans and by the recorder for %s, and is scored twice; "
                "use EvaluationSpanProcessor or the recorder, not both",
                framework if other == _SPANS else other,
            )


_EVERY = 3600.0
"""Seconds between two looks at what is stored."""


class Baselines:
    """Holds scores against what 95 % of earlier turns reached, as the first sink that knows says."""

    def __init__(self, metrics: Sequence[Metric], sinks: Sequence[Sink]) -> None:
        self._learned = frozenset(metric.name for metric in metrics if metric.threshold == "baseline")
        self._known = next((sink for sink in sinks if isinstance(sink, KnowsEarlierScores)), None)
        self._bars: dict[object, tuple[float, float | None]] = {}

    async def apply(self, evaluation: Evaluation) -> Evaluation:
        """The Evaluation with a verdict for each score whose bar is learned, as far as it is known yet."""
        if not self._learned or self._known is None:
            return evaluation
        scores = [
            await self._held(self._known, score) if score.metric in self._learned else score
            for score in evaluation.scores
        ]
        return evaluation.replace(scores=tuple(scores))

    async def _held(self, known: KnowsEarlierScores, score: Score) -> Score:
        key = (score.metric, score.options, score.provenance)
        due, bar = self._bars.get(key, (0.0, None))
        if time.monotonic() >= due:
            # Set first: turns that are judged meanwhile go by the bar there was.
            self._bars[key] = (time.monotonic() + _EVERY, bar)
            bar = await asyncio.to_thread(known.baseline, score, now=time.time())
            self._bars[key] = (time.monotonic() + _EVERY, bar)
        return held_against(score, bar)
