"""What is under way while its caller is cancelled: leases just being made, results just being stored."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

_Found = TypeVar("_Found")
_AHEAD = 4


class Leasing(Generic[_Found]):
    """Makes leases in tasks of their own; what comes when its caller is gone is for the next, or `left`.

    A lease that is cancelled itself may have been made already, and nobody would hear of it until it ends;
    RabbitMQ's client even closes its channel over a call that is cancelled.

    Args:
        ahead: Whether a quarter more is leased than was ever asked for: asking costs as much for several as
            for one.
    """

    def __init__(self, *, ahead: bool = False) -> None:
        self.ready: list[_Found] = []
        """Leased, and not handed out yet."""
        self._ahead = ahead
        self._most = 0
        self._coming: asyncio.Task[list[_Found]] | None = None

    async def take(
        self, most: int, lease: Callable[[int], Coroutine[Any, Any, list[_Found]]]
    ) -> list[_Found]:
        """What is ready, else what `lease` brings; raises what that raises. For one caller at a time."""
        self._most = max(self._most, most)
        if not self.ready:
            if self._coming is None:
                more = self._most // _AHEAD if self._ahead else 0
                self._coming = asyncio.create_task(lease(most + more))
            await asyncio.wait([self._coming])
            came, self._coming = self._coming, None
            self.ready = came.result()
        taken, self.ready = self.ready[:most], self.ready[most:]
        return taken

    async def left(self) -> list[_Found]:
        """What was not handed out, and what is just coming."""
        if self._coming is not None:
            with contextlib.suppress(Exception):
                await self.take(0, _nothing)
        left, self.ready = self.ready, []
        return left


async def _nothing(_: int) -> list[Any]:
    return []


async def to_the_end(work: Awaitable[_Found], *, seconds: float) -> _Found:
    """The result of what is not broken off: whoever is cancelled waits so long for its end first."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=seconds)
        raise
