"""Runs applications whose conversations are coroutines: LlamaIndex's and plain Python's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from generator.choices import Choices
from generator.content import turns_of
from generator.receiving import Receiver, Run
from generator.spans import Spans
from generator.turns import NOW, Turn, begin

Answer = Callable[[Turn], Awaitable[str]]
EMPTY = "Empty Response"


@dataclass(frozen=True, kw_only=True)
class Application:
    """An application, ready to run."""

    answer: Callable[[], Answer]
    """Begins a conversation: what answers its turns."""
    hops: int = 1
    everything: bool = False
    """Whether all that is found is shown."""

    def shows(self, turn: Turn) -> Iterable[str]:
        """The passages that must stand in the prompt of the answer."""
        return turn.everything() if self.everything else turn.shown


def run_conversations(
    application: Application,
    choices: Choices,
    recorder: Callable[[Receiver], AbstractContextManager[Any]],
    spans: Spans | None,
) -> Run:
    """Run all turns of an application, several tenants' at once or in turns."""
    conversations = turns_of(choices, hops=application.hops)
    begin([turn for turns in conversations for turn in turns])
    receiver = Receiver()
    served = spans.served if spans and choices["served"] == "yes" else nullcontext

    async def converse(answer: Answer, turn: Turn) -> None:
        token = NOW.set(turn)
        with served():
            turn.answer = (await answer(turn)).strip()
        if turn.answer == EMPTY:  # what LlamaIndex says by itself where there are no nodes
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

    with recorder(receiver):
        if len(conversations) > 1 and choices["together"] == "pool":
            with ThreadPoolExecutor(len(conversations)) as pool:
                list(pool.map(lambda turns: asyncio.run(alone(turns)), conversations))
        else:
            asyncio.run(together())
    return Run(choices, [turn for turns in conversations for turn in turns], receiver, application.shows)
