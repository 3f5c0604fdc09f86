"""Runs an application of LlamaIndex in its way, under a recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

from generator.choices import Choices
from generator.content import turns_of
from generator.llamaindex.applications import SHAPES, Answer
from generator.receiving import Receiver, Run
from generator.spans import Spans
from generator.turns import NOW, Turn, begin
from steelyard_llamaindex import instrument, uninstrument

EMPTY = "Empty Response"


def run(choices: Choices, spans: Spans | None = None) -> Run:
    """Build an application, run all its turns, and give back what was recorded."""
    application = SHAPES[choices["shape"]](choices)
    conversations = turns_of(choices, hops=application.hops)
    begin([turn for turns in conversations for turn in turns])
    receiver = Receiver()
    served = spans.served if spans and choices["served"] == "yes" else nullcontext

    async def converse(answer: Answer, turn: Turn) -> None:
        token = NOW.set(turn)
        with served():
            turn.answer = (await answer(turn)).strip()
        if turn.answer == EMPTY:  # what the framework says by itself where there are no nodes
            turn.prompt = turn.prompt or EMPTY
        NOW.reset(token)

    async def alone(turns: Sequence[Turn]) -> None:
        answer = application.answer()
        for turn in turns:
            await converse(answer, turn)

    async def together() -> None:
        answers = [application.answer() for _ in conversations]
        for turns in zip(*conversations, strict=True):
            pairs = zip(answers, turns, strict=True)
            if choices["together"] == "gather":
                await asyncio.gather(*(converse(answer, turn) for answer, turn in pairs))
            else:
                for answer, turn in pairs:
                    await converse(answer, turn)

    with spans.recording(receiver) if spans else _instrumented(receiver):
        if len(conversations) > 1 and choices["together"] == "pool":
            with ThreadPoolExecutor(len(conversations)) as pool:
                list(pool.map(lambda turns: asyncio.run(alone(turns)), conversations))
        else:
            asyncio.run(together())
    return Run(choices, [turn for turns in conversations for turn in turns], receiver, application.shows)


@contextmanager
def _instrumented(receiver: Receiver) -> Iterator[None]:
    instrument(receiver)
    try:
        yield
    finally:
        uninstrument()
