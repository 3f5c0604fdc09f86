"""One check: the passes over the probe set, the figures they come to, and the baselines beside them.

Two judges that do not judge show what word overlap and the length of an answer are worth by themselves. Each
takes the one threshold that suits the probe set best, chosen with the right answers in view. That flatters
them, so that a judge which beats them does so honestly.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from steelyard.probing._figures import Effect, JudgeCheck, accuracy, by, calibration, change
from steelyard.probing._probes import AskedProbes, Probe, ProbeSet, ask, load_probes
from steelyard.questions import (
    Answer,
    Capabilities,
    Fuse,
    Judge,
    Noncommittal,
    Question,
    Reply,
    Request,
    Supported,
    YesNo,
)

_LONGER = "To say it in full and at some length, going by everything that the given passages have to say: "

Progress = Callable[[str, int, int], None]
"""Told the name of the pass, how many probes of it were asked, and of how many."""


def check_judge(
    judge: Judge,
    probes: ProbeSet | None = None,
    *,
    concurrency: int = 16,
    progress: Progress = lambda _name, _done, _of: None,
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
    return asyncio.run(acheck_judge(judge, probes, concurrency=concurrency, progress=progress))


async def acheck_judge(
    judge: Judge,
    probes: ProbeSet | None = None,
    *,
    concurrency: int = 16,
    progress: Progress = lambda _name, _done, _of: None,
) -> JudgeCheck:
    """`check_judge`, for callers with an event loop of their own."""
    started = time.monotonic()
    probes = probes or load_probes()
    passes: dict[str, AskedProbes] = {}

    async def make(name: str, asked: Sequence[Probe], *, fuse: Fuse = "view", again: bool = False) -> None:
        def done(count: int) -> None:
            progress(name, count, len(asked))

        passes[name] = await ask(judge, asked, fuse=fuse, again=again, concurrency=concurrency, done=done)

    every = probes.probes
    claims = [probe for probe in every if probe.asks == "supported"]
    await make("all", every)
    # A judge that is not there would be waited for in six further passes.
    if any(given.value is not None for given in passes["all"].given):
        await make("again", every, again=True)
        await make("swapped", [replace(probe, contexts=probe.contexts[::-1]) for probe in claims])
        # The longer wording is English, and wants a sentence.
        plain = [one for one in claims if one.language == "en" and one.kind != "yes_no" and not one.address]
        await make("longer", [replace(probe, claim=_LONGER + probe.claim) for probe in plain])
        await make("record", every, fuse="record")
        await make("off", every, fuse="off")
        await make("plain", [probe.without_address() for probe in every if probe.address])
    return _sum_up(judge, probes, passes, time.monotonic() - started)


def _sum_up(judge: Judge, probes: ProbeSet, passes: dict[str, AskedProbes], seconds: float) -> JudgeCheck:
    first = passes["all"].given

    def effect(after: str, before: str = "all") -> Effect | None:
        both = before in passes and after in passes
        return change(passes[before], passes[after]) if both else None

    causes: Counter[str] = sum((asked.causes for asked in passes.values()), Counter())
    foreign = [given for given in first if given.probe.kind == "language"]
    return JudgeCheck(
        judge=judge.name,
        prompt_version=judge.prompt_version,
        probes=probes.sha256,
        published=probes.published,
        n=len(first),
        overall=accuracy(first),
        kinds=by(first, lambda given: given.probe.kind),
        languages=by(foreign, lambda given: given.probe.language),
        calibration=calibration(first),
        again=effect("again"),
        swapped=effect("swapped"),
        longer=effect("longer"),
        fused_record=effect("record"),
        fused_off=effect("off"),
        injected=effect("all", before="plain"),
        causes=dict(causes.most_common()),
        passes={name: asked.usage for name, asked in passes.items()},
        seconds=seconds,
    )


# A word, or one character of a script that is written without spaces.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
_KINDS: frozenset[type[Question]] = frozenset({Supported, Noncommittal})


def overlap(claim: str, contexts: Sequence[str]) -> float:
    """The share of a claim's words, 0..1, that stand in the contexts; 0 of a claim without words."""
    words = _WORD.findall(claim.casefold())
    known = {word for context in contexts for word in _WORD.findall(context.casefold())}
    return sum(word in known for word in words) / len(words) if words else 0.0


class Baseline:
    """Says yes to a claim from a measure of it alone, and that an answer evades where it would say no.

    Word overlap is not shown the contexts beside a question about evasion, so that it says of every answer
    that it evades.
    """

    prompt_version = "1"
    capabilities = Capabilities(kinds=_KINDS, independent=True, max_questions=10_000)

    def __init__(
        self, name: str, measure: Callable[[str, Sequence[str]], float], *, threshold: float, is_share: bool
    ) -> None:
        self.name = name
        self._measure = measure
        self._threshold = threshold
        self._is_share = is_share

    async def answer(self, request: Request) -> Reply:
        contexts = [context.text for context in request.view.contexts or ()]
        return Reply(
            answers={
                key: self._verdict(question, request.view.answer or "", contexts)
                for key, question in request.questions.items()
            }
        )

    def _verdict(self, question: Question, answer: str, contexts: Sequence[str]) -> Answer:
        if isinstance(question, Supported):
            value = self._measure(question.claim, contexts)
            return YesNo(value=value >= self._threshold, probability=value if self._is_share else None)
        return YesNo(value=self._measure(answer, contexts) < self._threshold)

    async def aclose(self) -> None:
        """Nothing to release."""


def baselines(probes: Sequence[Probe]) -> tuple[Judge, Judge]:
    """Word overlap and answer length, each with the threshold that is right on most of these probes."""
    claims = [probe for probe in probes if probe.asks == "supported"]

    def made(name: str, measure: Callable[[str, Sequence[str]], float], *, is_share: bool) -> Baseline:
        threshold = _best([(measure(one.claim, one.contexts), one.expected) for one in claims])
        return Baseline(name, measure, threshold=threshold, is_share=is_share)

    return (
        made("word-overlap", overlap, is_share=True),
        made("answer-length", lambda claim, _: float(len(claim)), is_share=False),
    )


def _best(measured: Sequence[tuple[float, bool]]) -> float:
    """The threshold from which a yes is right most often; the lowest of several."""
    candidates = sorted({value for value, _ in measured})

    def right(threshold: float) -> int:
        return sum((value >= threshold) == expected for value, expected in measured)

    return max(candidates, key=right, default=0.0)
