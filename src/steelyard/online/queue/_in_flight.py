"""Leases that are just being made when whoever asked for them is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

_Found = TypeVar("_Found")


class InFlight(Generic[_Found]):
    """Makes leases in tasks of their own; what comes for a caller that was cancelled is kept for `left`.

    A lease that is cancelled itself may have been made already, and nobody would hear of it until it ends;
    RabbitMQ's client even closes its channel over a call that is cancelled.
    """

    def __init__(self) -> None:
        self._left: list[asyncio.Task[list[_Found]]] = []

    async def lease(self, leasing: Coroutine[Any, Any, list[_Found]]) -> list[_Found]:
        """What was leased; raises what the lease raises."""
        task = asyncio.create_task(leasing)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._left.append(task)
            raise

    async def left(self) -> list[_Found]:
        """What has come, and is just coming, for callers that were cancelled."""
        left, self._left = self._left, []
        came = await asyncio.gather(*left, return_exceptions=True)
        return [one for found in came if isinstance(found, list) for one in found]
