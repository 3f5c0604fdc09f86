"""The run: from stored turns to what is still to be judged, to Evaluations, to the sinks.

There is no file with the state of a run: what the results file has is done. So a run that was stopped goes on
where it was, and turns that were judged live are left out, whatever the order.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import Final

from steelyard._internal.text import error_words
from steelyard.backfill._source import Judgement, Source, StoredTurnFilter, known_judgements
from steelyard.engine import evaluate_one
from steelyard.errors import SteelyardError
from steelyard.metrics import Metric, metric_provenance
from steelyard.online import MonitorOptions, Price, key_of, sampling_position, without_content
from steelyard.record import Record, with_hashed_user
from steelyard.scores import Evaluation, Usage
from steelyard.sinks import Sink, SQLiteSink

_LOOKED_UP_AT_ONCE: Final = 200
_WRITTEN_AT_ONCE: Final = 64
_TRIES: Final = 3
_PAUSE: Final = 0.5
_HOPELESS: Final = 20  # a wrong key or address shows at once, and costs no run of a hundred thousand
# A turn that failed or was cancelled has no answer to judge.
_JUDGED: Final = frozenset({"ok", "truncated"})


@dataclass(frozen=True, slots=True)
class Task:
    """A turn that is still to be judged."""

    record: Record
    metrics: tuple[str, ...]
    """The metrics for which there is no result yet."""
    inclusion: float = 1.0
    """The probability with which it was picked."""


@dataclass(frozen=True, kw_only=True)
class BackfillCounts:
    """What became of every turn: read = left out + known + judged + left over by a stop."""

    read: int = 0
    """Turns that were found."""
    bad: int = 0
    """Rows, lines and traces that hold no turn and should."""
    without: Mapping[str, int] = field(default_factory=dict)
    """Traces that gave no turn, by cause."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Turns that are not to be judged, by cause."""
    known: int = 0
    """Turns whose results are there already."""
    judged: int = 0
    """Turns that were judged and written to every sink."""
    failed: int = 0
    """Of those, the ones in which a metric failed; the next run tries them again."""
    usage: Usage = field(default_factory=Usage)
    """What judging used up."""
    stopped: str = ""
    """Why the run ended early; empty where it did not."""


class Backfill:
    """Scores stored turns.

    Args:
        sources: Where the turns are.
        options: Metrics, judge, sinks and the rest, as a Monitor has them.
        results: The results file in which to look for what is done; also among the sinks, as a rule.
        meant: Which turns are meant.
        sample: The share of turns to judge, by hash of the trace id as in a Monitor, from 0 to 1.
        budget: US dollars at which to stop.
        price: What tokens cost, for judges that do not say it themselves.
        bad: Told of what holds no turn: where, and why.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        options: MonitorOptions,
        results: str | os.PathLike[str] | None,
        meant: StoredTurnFilter | None = None,
        sample: float = 1.0,
        budget: float | None = None,
        price: Price | None = None,
        bad: Callable[[str, str], None] | None = None,
    ) -> None:
        self._sources = sources
        self._options = options
        self._results = results
        self._meant = meant or StoredTurnFilter()
        self._sample = sample
        self._budget = budget
        self._price = price
        self._tell_bad = bad or (lambda where, why: None)
        self._counts: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._without: Counter[str] = Counter()
        self._usage = Usage()
        self._spent = 0.0
        self._under_way = 0
        self._stopped = ""
        # The results file comes last: what it has, every other sink has too.
        self._sinks = sorted(options.sinks, key=lambda sink: isinstance(sink, SQLiteSink))

    @property
    def counts(self) -> BackfillCounts:
        """What became of every turn so far."""
        return BackfillCounts(
            without=dict(self._without),
            left_out=dict(self._left_out),
            usage=self._usage,
            stopped=self._stopped,
            **{name: self._counts[name] for name in ("read", "bad", "known", "judged", "failed")},
        )

    def tasks(self) -> Iterator[Task]:
        """What is still to be judged. Reads the sources and judges nothing."""
        meant = self._meant_records()
        while some := list(islice(meant, _LOOKED_UP_AT_ONCE)):
            yield from self._unknown(some)

    async def run(self, advance: Callable[[Evaluation], None] = lambda _: None) -> BackfillCounts:
        """Judge and write until everything is done, the budget is used up or nothing works.

        Args:
            advance: Told of each Evaluation.

        Raises:
            SteelyardError: If a sink does not take results. What was written is done.
        """
        calibration = self._options.calibration
        batch: list[Evaluation] = []
        each = self._judged()
        async with AsyncExitStack() as closing:
            # Each is closed, whatever writing or closing another one ends with.
            for sink in reversed(self._sinks):
                closing.push_async_callback(sink.aclose)
            try:
                async with aclosing(each):
                    async for judged in each:
                        evaluation = judged if calibration is None else calibration.apply(judged)
                        self._note(evaluation)
                        batch.append(evaluation)
                        advance(evaluation)
                        if len(batch) >= _WRITTEN_AT_ONCE:
                            some, batch = batch, []
                            await self._write(some)
                        if self._is_hopeless():
                            self._stopped = f"the judge answered nothing for the first {_HOPELESS} turns"
                            break
            finally:
                if batch:
                    await self._write(batch)
        return self.counts

    async def _judged(self) -> AsyncGenerator[Evaluation, None]:
        waiting: set[asyncio.Task[Evaluation]] = set()
        coming = self._affordable()
        try:
            while True:
                # Taken as they are needed, so that turns stream however many there are.
                for task in islice(coming, self._options.concurrency - len(waiting)):
                    waiting.add(asyncio.create_task(self._judge(task)))
                if not waiting:
                    return
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    yield one.result()
        finally:
            # The consumer has stopped: what is under way would be paid for and thrown away.
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _judge(self, task: Task) -> Evaluation:
        options = self._options
        chosen = [metric for metric in options.metrics if metric.name in task.metrics]
        judge = options.judge or next(metric.judge for metric in chosen if metric.judge)
        return await evaluate_one(
            task.record,
            chosen,
            judge=judge,
            embedder=options.embedder,
            fuse=options.fuse,
            deadline=monotonic() + options.deadline,
            inclusion=task.inclusion,
        )

    def _meant_records(self) -> Iterator[Record]:
        seen: set[str] = set()
        for source in self._sources:
            for record in source.records(self._bad):
                self._counts["read"] += 1
                if (cause := self._cause(record, seen)) is None:
                    yield record
                else:
                    self._left_out[cause] += 1
            self._without.update(source.without)

    def _bad(self, where: str, why: str) -> None:
        self._counts["bad"] += 1
        self._tell_bad(where, why)

    def _cause(self, record: Record, seen: set[str]) -> str | None:
        if record.id in seen:
            return "duplicate"
        seen.add(record.id)
        if (cause := self._meant.leaves_out(record)) is not None:
            return cause
        position = sampling_position(key_of(record), self._options.sample_key)
        if position >= self._sample:
            return "sampled_out"
        if record.status not in _JUDGED:
            return f"status_{record.status}"
        metrics = self._options.metrics
        return "missing_input" if metrics and all(metric.missing(record) for metric in metrics) else None

    def _unknown(self, records: Sequence[Record]) -> Iterator[Task]:
        known = known_judgements(self._results, [record.id for record in records])
        for record in records:
            wanted = self._judgements(record)
            left = tuple(one.metric for one in wanted if one not in known)
            if not left:
                self._counts["known"] += 1
            elif (masked := self._masked(record)) is None:
                self._left_out["mask_failed"] += 1
            else:
                yield Task(masked, left, self._sample)

    def _judgements(self, record: Record) -> list[Judgement]:
        options = self._options

        def of(metric: Metric) -> Judgement:
            judge = options.judge or metric.judge
            assert judge is not None  # MonitorOptions has seen to it
            made = metric_provenance(metric, judge=judge, embedder=options.embedder, fuse=options.fuse)
            return Judgement(
                *(record.id, metric.name, metric.options_text, made.judge, made.embedder),
                *(made.prompt_version, made.metric_version, made.fuse),
            )

        return [of(metric) for metric in options.metrics]

    def _masked(self, record: Record) -> Record | None:
        """The turn without what nobody may see; None where the mask fails."""
        if self._options.mask is None:
            return with_hashed_user(record, self._options.user_key)
        try:
            masked = self._options.mask(record)
        except Exception:  # noqa: BLE001 - a user's function may raise anything
            return None
        if not isinstance(masked, Record):
            return None
        masked = masked.replace(id=record.id, trace=record.trace, timings=masked.timings or record.timings)
        return with_hashed_user(masked, self._options.user_key)

    def _affordable(self) -> Iterator[Task]:
        """The tasks, until one more might cost more than there is."""
        for task in self.tasks():
            done = self._counts["judged"] + self._counts["unwritten"]
            each = self._spent / done if done else 0.0
            if self._budget is not None and self._spent + (self._under_way + 1) * each > self._budget:
                self._stopped = f"the budget of ${self._budget:g} is used up (${self._spent:.4f})"
                return
            self._under_way += 1
            yield task

    def _note(self, evaluation: Evaluation) -> None:
        self._under_way -= 1
        self._counts["unwritten"] += 1
        self._counts["failed"] += any(score.status == "failed" for score in evaluation.scores)
        self._counts["hopeless"] += all(score.status == "failed" for score in evaluation.scores)
        self._usage += evaluation.usage
        cost = evaluation.usage.cost
        if cost is None and self._price is not None:
            cost = self._price.of(evaluation.usage)
        self._spent += cost or 0.0

    def _is_hopeless(self) -> bool:
        done = self._counts["judged"] + self._counts["unwritten"]
        return done == self._counts["hopeless"] >= _HOPELESS

    async def _write(self, evaluations: Sequence[Evaluation]) -> None:
        kept = [
            evaluation if self._options.store_content else without_content(evaluation)
            for evaluation in evaluations
        ]
        for sink in self._sinks:
            await _write(sink, kept)
        self._counts["unwritten"] -= len(kept)
        self._counts["judged"] += len(kept)


async def _write(sink: Sink, evaluations: Sequence[Evaluation]) -> None:
    for attempt in range(1, _TRIES + 1):
        try:
            return await sink.write(evaluations)
        except Exception as error:  # noqa: BLE001 - a sink may raise anything
            if attempt == _TRIES:
                why = f"does not take results: {error_words(error)}; run again to go on"
                raise SteelyardError(f"the sink {sink.name!r} {why}") from None
        await asyncio.sleep(_PAUSE * 2**attempt)
