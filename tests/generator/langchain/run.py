"""Runs an application of LangChain in its way, under a recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from typing import Any

from langchain_core.runnables import Runnable

from generator.choices import Choices
from generator.content import turns_of
from generator.langchain.application import Application
from generator.langchain.build import build
from generator.receiving import Receiver, Run
from generator.spans import Spans
from generator.turns import NOW, Turn, begin
from steelyard_langchain import CallbackHandler, attach, detach

DIAGNOSES = ("without_root", "expired", "too_many_open", "unreadable_event")
ASYNC = frozenset({"ainvoke", "astream", "events"})


def run(choices: Choices, spans: Spans | None = None) -> Run:
    """Build an application, run all its turns, and give back what was recorded, of spans or by a handler."""
    application = build(choices)
    conversations = turns_of(choices, hops=application.hops)
    begin([turn for turns in conversations for turn in turns])
    receiver = Receiver()
    recorder = spans.recording(receiver) if spans else _recorder(choices["recorder"], receiver)
    with recorder as callbacks:
        Driver(choices, application, callbacks or [], spans).run(conversations)
    return Run(choices, [turn for turns in conversations for turn in turns], receiver, application.shows)


@contextmanager
def _recorder(kind: str, receiver: Receiver) -> Iterator[list[Any] | None]:
    if kind == "attach":
        handler = attach(receiver)
        try:
            yield None
        finally:
            detach()
    else:
        handler = CallbackHandler(receiver)
        yield [handler]
    receiver.records()  # what is not a turn is counted when it is built
    receiver.diagnosed.update({cause: handler.stats().get(cause, 0) for cause in DIAGNOSES})


class Driver:
    """Runs the turns of an application."""

    def __init__(
        self, choices: Choices, application: Application, callbacks: list[Any], spans: Spans | None
    ) -> None:
        self.span = spans.served if spans and choices["served"] == "yes" else nullcontext
        self.way = choices["way"]
        if self.way == "batch" and not application.batches:
            self.way = "invoke"
        self.threaded = choices["thread"] == "yes" or choices["shape"] == "conversation"
        self.application = application
        self.callbacks = callbacks
        self.together = choices["together"] if choices["tenants"] == "2" else "one_thread"

    def run(self, conversations: Sequence[Sequence[Turn]]) -> None:
        """All turns, those of several tenants at once or in turns."""
        rounds = list(zip(*conversations, strict=True))
        if self.way == "batch":
            for turns in rounds:
                self._batch(turns)
        elif self.together == "pool":
            self._pool(conversations)
        elif self.way in ASYNC:
            asyncio.run(self._gather(rounds))
        else:
            for turn in [turn for turns in rounds for turn in turns]:
                copy_context().run(self._turn, turn)

    def _pool(self, conversations: Sequence[Sequence[Turn]]) -> None:
        def converse(turns: Sequence[Turn]) -> None:
            for turn in turns:
                if self.way in ASYNC:
                    asyncio.run(self._aturn(turn))
                else:
                    self._turn(turn)

        with ThreadPoolExecutor(len(conversations)) as pool:
            for done in [pool.submit(converse, turns) for turns in conversations]:
                done.result()

    async def _gather(self, rounds: Sequence[Sequence[Turn]]) -> None:
        for turns in rounds:
            if self.together == "gather":
                await asyncio.gather(*map(self._aturn, turns))
            else:
                for turn in turns:
                    await self._aturn(turn)

    def _config(self, turn: Turn) -> Any:
        config: dict[str, Any] = {"metadata": {"turn": turn.id}, "callbacks": list(self.callbacks)}
        turn.threaded = self.threaded
        if self.threaded:
            config["configurable"] = {"thread_id": turn.thread, "session_id": turn.thread}
        return config

    def _turn(self, turn: Turn) -> None:
        NOW.set(turn)
        with self.span():
            *before, last = self.application.steps
            given: Any = None
            for step in before:
                given = step.runnable.invoke(step.given(turn, given), self._config(turn))
            given = last.given(turn, given)
            if self.way == "stream":
                for _ in last.runnable.stream(given, self._config(turn)):
                    pass
            else:
                last.runnable.invoke(given, self._config(turn))

    async def _aturn(self, turn: Turn) -> None:
        token = NOW.set(turn)
        with self.span():
            *before, last = self.application.steps
            given: Any = None
            for step in before:
                given = await step.runnable.ainvoke(step.given(turn, given), self._config(turn))
            given = last.given(turn, given)
            await _consume(last.runnable, self.way, given, self._config(turn))
        NOW.reset(token)

    def _batch(self, turns: Sequence[Turn]) -> None:
        configs = [self._config(turn) for turn in turns]
        given: Sequence[Any] = [None] * len(turns)
        for step in self.application.steps:
            inputs = [step.given(turn, each) for turn, each in zip(turns, given, strict=True)]
            given = step.runnable.batch(inputs, configs)


async def _consume(runnable: Runnable[Any, Any], way: str, given: Any, config: Any) -> None:
    if way == "astream":
        async for _ in runnable.astream(given, config):
            pass
    elif way == "events":
        async for _ in runnable.astream_events(given, config, version="v2"):
            pass
    else:
        await runnable.ainvoke(given, config)
