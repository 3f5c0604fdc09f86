"""One check: the passes over the probe set, and the figures they come to."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from steelyard.probing._asking import AskedProbes, ask
from steelyard.probing._figures import Effect, JudgeCheck, accuracy, by, calibration, change
from steelyard.probing._probes import Probe, ProbeSet, load_probes
from steelyard.questions import Fuse, Judge

_LONGER = "To say it in full and at some length, going by everything that the given passages have to say: "


def check_judge(
    judge: Judge,
    probes: ProbeSet | None = None,
    *,
    concurrency: int = 16,
    progress: Callable[[str, int, int], None] = lambda _name, _done, _of: None,
) -> JudgeCheck:
    """Measure a judge on probes whose right answers are known.

    The judge is asked through the batcher, so that its middleware, the fusing of questions and the reading of
    replies are those of any other use. Seven passes are made: all probes, all of them again, passages
    swapped, claims made longer, the fuse modes `record` and `off`, and injections taken out. A judge that
    answers nothing in the first pass is not asked further.

    Args:
        judge: The judge; it is not closed.
        probes: The probe set; None for the one that ships with this version.
        concurrency: Records in flight.
        progress: Told the name of the pass, how many probes of it were asked, and of how many.

    Raises:
        ConfigurationError: If the probe set of this version was edited.
    """
    return asyncio.run(CheckRun(judge, probes or load_probes(), concurrency, progress).run())


@dataclass
class CheckRun:
    """The passes of one check, for callers with an event loop of their own; see `check_judge`."""

    judge: Judge
    probes: ProbeSet
    concurrency: int = 16
    progress: Callable[[str, int, int], None] = lambda _name, _done, _of: None
    passes: dict[str, AskedProbes] = field(default_factory=dict)

    async def run(self) -> JudgeCheck:
        """Make the passes and sum them up."""
        started = time.monotonic()
        every = self.probes.probes
        claims = [probe for probe in every if probe.asks == "supported"]
        first = await self._pass("all", every)
        # A judge that is not there would be waited for in six further passes.
        if any(given.value is not None for given in first.given):
            await self._pass("again", every, again=True)
            await self._pass("swapped", [replace(probe, contexts=probe.contexts[::-1]) for probe in claims])
            await self._pass(
                "longer",
                [replace(probe, claim=_LONGER + probe.claim) for probe in claims if _can_grow(probe)],
            )
            await self._pass("record", every, fuse="record")
            await self._pass("off", every, fuse="off")
            await self._pass("plain", [probe.without_address() for probe in every if probe.address])
        return self._sum_up(first, time.monotonic() - started)

    async def _pass(
        self, name: str, probes: Sequence[Probe], *, fuse: Fuse = "view", again: bool = False
    ) -> AskedProbes:
        asked = await ask(
            self.judge,
            probes,
            fuse=fuse,
            again=again,
            concurrency=self.concurrency,
            done=lambda count: self.progress(name, count, len(probes)),
        )
        self.passes[name] = asked
        return asked

    def _sum_up(self, first: AskedProbes, seconds: float) -> JudgeCheck:
        causes: Counter[str] = sum((asked.causes for asked in self.passes.values()), Counter())
        foreign = [given for given in first.given if given.probe.kind == "language"]
        return JudgeCheck(
            judge=self.judge.name,
            prompt_version=self.judge.prompt_version,
            probes=self.probes.sha256,
            published=self.probes.published,
            n=len(first.given),
            overall=accuracy(first.given),
            kinds=by(first.given, lambda given: given.probe.kind),
            languages=by(foreign, lambda given: given.probe.language),
            calibration=calibration(first.given),
            again=self._change("all", "again"),
            swapped=self._change("all", "swapped"),
            longer=self._change("all", "longer"),
            fused_record=self._change("all", "record"),
            fused_off=self._change("all", "off"),
            injected=self._change("plain", "all"),
            causes=dict(causes.most_common()),
            passes={name: asked.usage for name, asked in self.passes.items()},
            seconds=seconds,
        )

    def _change(self, before: str, after: str) -> Effect | None:
        if before not in self.passes or after not in self.passes:
            return None
        return change(self.passes[before], self.passes[after])


def _can_grow(probe: Probe) -> bool:
    """Whether the longer wording, which is English and wants a sentence, fits."""
    return probe.language == "en" and probe.kind != "yes_no" and not probe.address
