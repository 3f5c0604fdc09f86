"""Asking a judge, in a loop at the end of which it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import TypeVar

from steelyard.questions import Embedder, Judge, Reply, Request

Result = TypeVar("Result")


def closing(judge: Judge | Embedder, work: Coroutine[object, object, Result]) -> Result:
    """What some work with a judge comes to."""

    async def main() -> Result:
        async with aclosing(judge):
            return await work

    return asyncio.run(main())


def answered(judge: Judge, request: Request) -> Reply:
    return closing(judge, judge.answer(request))
