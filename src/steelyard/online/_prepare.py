"""From what was submitted to what may be judged, or to the reason why it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard.metrics import Metric
from steelyard.online._duplicates import DuplicateRecorderCheck
from steelyard.online._masking import Masker
from steelyard.online._turn_states import Closed, Selected
from steelyard.online.queue._feedback import Feedback
from steelyard.online.queue._memory import Queued, size_of
from steelyard.online.selection._budget import BudgetControl
from steelyard.online.selection._sampling import key_of, place
from steelyard.online.selection._selection import Decision, Selection
from steelyard.record import Record

__all__ = ["PICKED_FOR", "Preparer"]

PICKED_FOR = "steelyard.picked_for"
"""The metadata entry that names the rules and signs by which a turn was picked, where there are any."""

_REMEMBERED = 10_000
_JUDGED = frozenset({"ok", "truncated"})


class _Latest:
    """The latest so many ids."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._ids: dict[str, None] = {}

    def holds(self, record_id: str) -> bool:
        return record_id in self._ids

    def add(self, record_id: str) -> None:
        self._ids[record_id] = None
        if len(self._ids) > self._most:
            del self._ids[next(iter(self._ids))]


class Preparer:
    """Builds, decides and masks; runs in the background loop."""

    def __init__(
        self,
        *,
        selection: Selection,
        metrics: Sequence[Metric],
        masker: Masker,
        pace: BudgetControl,
        feedback: Feedback,
        keep: bool,
    ) -> None:
        self._selection = selection
        self._metrics = metrics
        self._masker = masker
        self._pace = pace
        self._feedback = feedback
        self._keep = keep
        self._latest = _Latest(_REMEMBERED)
        self._twice = DuplicateRecorderCheck()

    async def prepare(self, item: Queued) -> Selected | Closed:
        """What to do with a turn. Whatever a user's draft, rule or mask raises comes out as it is."""
        record = item.turn if isinstance(item.turn, Record) else item.turn.build()
        if record is None:
            return Closed("skipped", "not_rag")
        where = place(key_of(item.turn)) if item.place is None else item.place
        decision = self._selection.decide(record, disliked=self._feedback.disliked(record.id))
        if decision.skip:
            return Closed("skipped", decision.skip)
        again = self._worth_keeping(item, record, where, decision)
        if where >= decision.rate and not decision.forced:
            return Closed("skipped", "sampled_out", again)
        if record.status not in _JUDGED:
            return Closed("skipped", f"status_{record.status}")
        if self._metrics and all(metric.missing(record) for metric in self._metrics):
            return Closed("skipped", "missing_input")
        if self._latest.holds(record.id) and not item.again:
            return Closed("skipped", "duplicate")
        return await self._admit(record, where, decision, again)

    async def _admit(
        self, record: Record, where: float, decision: Decision, again: Queued | None
    ) -> Selected | Closed:
        """Hold a picked turn against throttle and budget, and make it safe to look at."""
        rate = 1.0 if decision.forced else decision.rate * self._pace.share()
        names = [metric.name for metric in self._metrics]
        if (0 < rate <= where) or (names and not self._selection.metrics_for(where, rate, names)):
            return Closed("skipped", "sampled_out", again)
        reservation = self._pace.reserve(forced=decision.forced)
        if isinstance(reservation, str):
            return Closed("skipped", reservation)
        masked = await self._masker.apply(record)
        if masked is None:
            self._pace.release(reservation)
            return Closed("skipped", "mask_failed")
        self._latest.add(record.id)
        self._twice.look(record)
        metadata = self._with_feedback(masked, decision)
        if metadata is not masked.metadata:
            masked = masked.replace(metadata=metadata)
        return Selected(masked, where, rate, reservation, again)

    def _worth_keeping(self, item: Queued, record: Record, where: float, decision: Decision) -> Queued | None:
        """The turn as it would be taken up again, if the user's dislike could still change its rate."""
        suspicion = self._selection.suspicion
        if not self._keep or suspicion is None or item.again or decision.forced:
            return None
        if not max(where, decision.rate) < suspicion.rate:
            return None
        return Queued(record, where, size_of(record), again=True)

    def _with_feedback(self, record: Record, decision: Decision) -> Mapping[str, object]:
        extra: dict[str, object] = dict(self._feedback.known(record.id))
        if decision.reasons:
            extra[PICKED_FOR] = list(decision.reasons)
        return {**record.metadata, **extra} if extra else record.metadata
