"""Asking a judge: probes become records and questions, and go through the batcher as those of metrics do."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from steelyard.probing._probes import Probe
from steelyard.questions import (
    Fuse,
    Judge,
    MetricRun,
    Noncommittal,
    Question,
    QuestionBatcher,
    Relevant,
    Supported,
    Unanswered,
    YesNo,
)
from steelyard.record import Context, Record
from steelyard.scores import Score, Usage

CLAIMS = 8
"""Claims about one text that share a request, as the claims of one answer do."""

_REPEAT = 2
"""The number of an independent repeat; chat judges draw it anew from 2 on, in the same words."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What a judge said to one probe."""

    probe: Probe
    value: bool | None = None
    """Yes or no; None where there was no answer."""
    probability: float | None = None
    """The judge's probability of yes."""
    cause: str | None = None

    @property
    def right(self) -> bool:
        """Whether it is what the set expects; no answer is not right."""
        return self.value is self.probe.expected


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedProbes:
    """One pass over some probes."""

    given: tuple[ProbeAnswer, ...]
    """One per probe, in the order given."""
    usage: Usage

    @property
    def causes(self) -> Counter[str]:
        """Why probes have no answer, counted."""
        return Counter(given.cause for given in self.given if given.cause)


@dataclass
class _Turn:
    """Probes that share a record; the metric that asks them, as far as the batcher is concerned."""

    record: Record
    probes: list[Probe]
    sample: int
    company: bool
    given: list[ProbeAnswer] = field(default_factory=list)
    name: str = "probes"

    def ask(self, record: Record) -> MetricRun:
        """Ask all of them in one round, and keep what comes back."""
        questions: list[Question] = [
            Noncommittal(sample=self.sample)
            if probe.asks == "evades"
            else Supported(claim=probe.claim, sample=self.sample)
            for probe in self.probes
        ]
        # What other metrics would ask in the same request where nothing is kept apart.
        company = [Relevant(text=record.contexts[0].text)] if self.company else []
        answers = yield [*questions, *company]
        for probe, answer in zip(self.probes, answers, strict=False):
            if isinstance(answer, YesNo):
                self.given.append(ProbeAnswer(probe, answer.value, answer.probability))
            else:
                cause = answer.cause if isinstance(answer, Unanswered) else "malformed_answer"
                self.given.append(ProbeAnswer(probe, cause=cause))
        return Score.not_applicable(self.name, cause="probe", explanation="asked for its verdicts alone")


async def ask(
    judge: Judge,
    probes: Sequence[Probe],
    *,
    fuse: Fuse = "view",
    again: bool = False,
    concurrency: int = 16,
    done: Callable[[int], None] = lambda _: None,
) -> AskedProbes:
    """Put probes to a judge. What fails is accounted for by its cause, and the rest goes on.

    Args:
        judge: The judge.
        probes: What to ask.
        fuse: How questions share requests. Claims about one text share a record, eight at most and never both
            twins of a pair, so that neither gives the other away.
        again: Ask as an independent sample, which no cache answers with the first one.
        concurrency: Records in flight.
        done: Told how many probes of this pass were asked, every time some more were.
    """
    slots = asyncio.Semaphore(concurrency)
    finished = 0

    async def run(turn: _Turn) -> Usage:
        nonlocal finished
        async with slots:
            batcher = QuestionBatcher(judge, fuse=fuse)
            await batcher.run(turn.record, [turn])
        finished += len(turn.probes)
        done(finished)
        return batcher.usage

    turns = list(_turns(probes, sample=_REPEAT if again else 0, company=fuse == "record"))
    usages = await asyncio.gather(*map(run, turns))
    # Records were made of probes in another order.
    by_id = {given.probe.id: given for turn in turns for given in turn.given}
    return AskedProbes(given=tuple(by_id[probe.id] for probe in probes), usage=sum(usages, Usage()))


def _turns(probes: Iterable[Probe], *, sample: int, company: bool) -> Iterable[_Turn]:
    """Records with their probes: the same material, twins apart, true and false ones mixed."""
    groups: dict[tuple[tuple[str, ...], str, str, int], list[Probe]] = {}
    pairs: dict[str, int] = {}
    for probe in probes:
        half = (pairs.setdefault(probe.pair, len(pairs)) + probe.expected) % 2
        answer = probe.claim if probe.asks == "evades" else ""
        groups.setdefault((probe.contexts, probe.question, answer, half), []).append(probe)
    for (texts, question, answer, _), members in groups.items():
        contexts = tuple(Context(text=text) for text in texts)
        record = Record(question=question, contexts=contexts, answer=answer)
        for start in range(0, len(members), CLAIMS):
            yield _Turn(record, members[start : start + CLAIMS], sample, company)
