"""What every middleware is: a judge around a judge, alike in everything but when and whether it asks."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.questions import Capabilities, Judge, Reply, Request


class Wrapper:
    """A judge that hands everything on to another one. Subclasses change `answer`."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    @property
    def name(self) -> str:
        """The wrapped judge's name: middleware does not change what an answer means."""
        return self.judge.name

    @property
    def prompt_version(self) -> str:
        """The wrapped judge's wording."""
        return self.judge.prompt_version

    @property
    def capabilities(self) -> Capabilities:
        """What the wrapped judge can do."""
        return self.judge.capabilities

    async def answer(self, request: Request) -> Reply:
        """Hand the request on."""
        return await self.judge.answer(request)

    async def aclose(self) -> None:
        """Close the wrapped judge."""
        await self.judge.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.judge!r})"


def layers(judge: Judge) -> Iterator[Judge]:
    """A judge and what it wraps, from the outside in."""
    yield judge
    while isinstance(judge, Wrapper):
        judge = judge.judge
        yield judge
