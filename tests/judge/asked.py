"""Asking a judge, in a loop at the end of which it is closed, or one behind a server of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from judge_server import JudgeServer
from steelyard.judge import ChatJudge
from steelyard.questions import Embedder, Judge, Question, Rating, Reply, Request, Supported, View
from steelyard.record import Context

Result = TypeVar("Result")


def closing(judge: Judge | Embedder, work: Coroutine[object, object, Result]) -> Result:
    """What some work with a judge comes to."""

    async def main() -> Result:
        async with aclosing(judge):
            return await work

    return asyncio.run(main())


def answered(judge: Judge, request: Request) -> Reply:
    return closing(judge, judge.answer(request))


VIEW = View(
    question="Where was Einstein born?",
    contexts=(Context(text="Einstein was born in Ulm."), Context(text="Ulm lies on the Danube.")),
    answer="In Ulm.",
)

NEEDS = frozenset[Any]({"answer"})

RATING = Rating(instruction="How good?", levels=((0, "bad"), (1, "fair"), (2, "good")), needs=NEEDS)


def request(*questions: Question, view: View = VIEW) -> Request:
    return Request(view=view, questions={f"q{n}": q for n, q in enumerate(questions, start=1)})


ONE = request(Supported(claim="Einstein was born in Ulm."))


def ask(server: JudgeServer | str, what: Request = ONE, *, times: int = 1, **options: Any) -> Reply:
    """The last of so many replies by one judge."""
    judge = ChatJudge("m", base_url=server if isinstance(server, str) else server.url, **options)

    async def last() -> Reply:
        for _ in range(times - 1):
            await judge.answer(what)
        return await judge.answer(what)

    return closing(judge, last())
