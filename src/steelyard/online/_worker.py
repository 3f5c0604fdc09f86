"""The worker: what happens to a turn in the background, from the queue to the sinks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from steelyard.engine import evaluate_one
from steelyard.metrics import Metric
from steelyard.online._content import Masker, without_content
from steelyard.online._outlet import Outlet, SinkCounts
from steelyard.online._plan import Plan
from steelyard.online._queue import Intake, Submitted
from steelyard.online._sampling import key_of, place
from steelyard.record import Record, clean, unrecorded
from steelyard.scores import Evaluation, Usage

__all__ = ["Worker"]

_log = logging.getLogger("steelyard.online")
_LOOK = 0.02
_LINGER = 5.0
_JUDGED = frozenset({"ok", "truncated"})


@dataclass(frozen=True, slots=True)
class _Final:
    """A turn that ends here, and why."""

    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Ready:
    """A turn that is to be judged."""

    record: Record
    metrics: list[Metric]
    inclusion: Mapping[str, float]


class Worker:
    """Takes turns from the intake, decides, evaluates and delivers; runs inside the background loop."""

    def __init__(self, plan: Plan, *, intake: Intake, tell: Callable[[Evaluation], None]) -> None:
        self._plan = plan
        self._intake = intake
        self._tell = tell
        self._outlets = [Outlet(sink, timeout=plan.sink_timeout) for sink in plan.sinks]
        self._news: asyncio.Event | None = None
        self._said: set[str] = set()
        self.usage = Usage()

    @property
    def sinks(self) -> dict[str, SinkCounts]:
        """What became of the Evaluations, by sink."""
        return {outlet.name: outlet.counts for outlet in self._outlets}

    def nudge(self) -> None:
        """There is news in the intake; called in the loop."""
        if self._news is not None:
            self._news.set()

    async def run(self) -> None:
        """Work until cancelled."""
        self._news = asyncio.Event()
        masker = Masker(self._plan.mask, timeout=self._plan.mask_timeout)
        slots = asyncio.Semaphore(self._plan.concurrency)
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                await slots.acquire()
                task = asyncio.create_task(self._handle(await self._next(), masker))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                task.add_done_callback(lambda _: slots.release())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            masker.close()
            await self._close()

    async def _next(self) -> Submitted:
        """The next turn. Looks in every 20 ms for some seconds, then sleeps until it is woken."""
        assert self._news is not None
        idle_since = time.monotonic()
        while not (taken := self._intake.take(1)):
            if time.monotonic() - idle_since < _LINGER:
                await asyncio.sleep(_LOOK)
                continue
            self._news.clear()
            if self._intake.sleep():
                await self._news.wait()
        return taken[0]

    async def _handle(self, item: Submitted, masker: Masker) -> None:
        """Bring one turn to its final state, whatever happens; a cancelled one stays pending."""
        try:
            with unrecorded():
                final = await self._finish(item, masker)
        except Exception as error:  # noqa: BLE001 - users' drafts, metrics and rules may raise anything
            self._say(f"a turn could not be evaluated: {type(error).__name__}: {error}", error)
            final = _Final("dead", type(error).__name__)
        self._intake.settle(final.state, final.reason)  # type: ignore[arg-type]

    async def _finish(self, item: Submitted, masker: Masker) -> _Final:
        ready = await self._prepare(item, masker)
        if isinstance(ready, _Final):
            return ready
        evaluation = await self._evaluate(ready)
        self.usage += evaluation.usage
        await self._deliver(evaluation)
        return _Final("evaluated", "")

    async def _prepare(self, item: Submitted, masker: Masker) -> _Ready | _Final:
        """Build, decide, mask, clean: from what was submitted to what can be judged, or why it cannot."""
        record = item.turn if isinstance(item.turn, Record) else item.turn.build()
        if record is None:
            return _Final("skipped", "not_rag")
        decision = self._plan.selection.decide(record)
        if decision.skip:
            return _Final("skipped", decision.skip)
        where = place(key_of(item.turn)) if item.place is None else item.place
        if where >= decision.rate and not decision.forced:
            return _Final("skipped", "sampled_out")
        if record.status not in _JUDGED:
            return _Final("skipped", f"status_{record.status}")
        masked = await masker.apply(record)
        if masked is None:
            return _Final("skipped", "mask_failed")
        return self._pick(clean(masked), where, decision.rate)

    def _pick(self, record: Record, where: float, rate: float) -> _Ready | _Final:
        """The metrics that score this turn."""
        metrics = self._plan.metrics
        if not metrics:
            return _Ready(record, [], {})
        able = [metric for metric in metrics if metric.missing(record) is None]
        if not able:
            return _Final("skipped", "missing_input")
        names = [metric.instance for metric in metrics]
        inclusion = self._plan.selection.metrics_for(where, rate, names)
        if not inclusion:
            return _Final("skipped", "sampled_out")
        return _Ready(record, [metric for metric in metrics if metric.instance in inclusion], inclusion)

    async def _evaluate(self, ready: _Ready) -> Evaluation:
        if not ready.metrics:
            record = ready.record
            return Evaluation(
                record_id=record.id, scores=(), record=record, trace=record.trace, evaluated_at=time.time()
            )
        # Plan has seen to it that a metric without a judge of its own finds one here.
        judge = self._plan.judge or ready.metrics[0].judge
        assert judge is not None
        return await evaluate_one(
            ready.record,
            ready.metrics,
            judge=judge,
            embedder=self._plan.embedder,
            fuse=self._plan.fuse,
            deadline=time.monotonic() + self._plan.deadline,
            inclusion=ready.inclusion,
        )

    async def _deliver(self, evaluation: Evaluation) -> None:
        if not self._plan.store_content:
            evaluation = without_content(evaluation)
        self._tell(evaluation)
        if self._outlets:
            await asyncio.gather(*(outlet.write(evaluation) for outlet in self._outlets))

    async def _close(self) -> None:
        with unrecorded():
            for outlet in self._outlets:
                await outlet.close()
            for part in (self._plan.judge, self._plan.embedder):
                if part is not None:
                    await part.aclose()

    def _say(self, text: str, error: Exception) -> None:
        kind = type(error).__name__
        if kind not in self._said:
            self._said.add(kind)
            _log.warning("%s; said once for each kind of error", text, exc_info=error)
