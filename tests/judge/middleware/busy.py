"""A judge to wrap, that counts what it is asked at once."""

from __future__ import annotations

import asyncio

from steelyard.errors import Cause, JudgeError, JudgeUnavailable
from steelyard.questions import Judge, Reply, Request, Supported, View, YesNo
from steelyard.record import Context
from steelyard.scores import Usage
from steelyard.testing import ScriptedJudge

ONE = Request(view=View(contexts=(Context(text="c"),)), questions={"q1": Supported(claim="a")})


class Busy:
    """A judge that counts who is in, and misbehaves as told."""

    name = "busy"
    prompt_version = "1"
    capabilities = ScriptedJudge(lambda question, request: None).capabilities

    def __init__(self, *errors: JudgeError | None, seconds: float = 0.0) -> None:
        self.errors = list(errors)
        self.seconds = seconds
        self.calls = 0
        self.inside = 0
        self.peak = 0
        self.closed = 0

    async def answer(self, request: Request) -> Reply:
        self.calls += 1
        self.inside += 1
        self.peak = max(self.peak, self.inside)
        try:
            await asyncio.sleep(self.seconds)
            if self.errors and (error := self.errors.pop(0)) is not None:
                raise error
            return Reply(answers={"q1": YesNo(value=True)}, usage=Usage(requests=1))
        finally:
            self.inside -= 1

    async def aclose(self) -> None:
        self.closed += 1


def down(cause: Cause = "server_error") -> JudgeUnavailable:
    return JudgeUnavailable("down", cause=cause)


async def ask(judge: Judge, times: int = 1) -> list[Reply | BaseException]:
    return await asyncio.gather(*(judge.answer(ONE) for _ in range(times)), return_exceptions=True)
