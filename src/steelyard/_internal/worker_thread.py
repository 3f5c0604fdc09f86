"""One daemon thread for calls that may block, so that an exporter or server that hangs holds up nobody."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from steelyard._internal.threads import DaemonExecutor, ThreadHangs
from steelyard.errors import SinkError

_Result = TypeVar("_Result")


class WorkerThread:
    """A sink's thread: a `DaemonExecutor` of one thread that raises SinkError where an earlier call hangs."""

    def __init__(
        self, name: str, *, around: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> None:
        self._around = around
        self._executor = DaemonExecutor(1, name=name)

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """The result of a call in the thread, inside the context `around`.

        Raises:
            SinkError: If an earlier call, which somebody has given up waiting for, still hangs.
        """
        try:
            return await self._executor.run(self._inside, work)
        except ThreadHangs as error:
            raise SinkError(str(error), cause="hangs") from None

    def close(self) -> None:
        """Let the thread end after what it is doing; a later call starts another."""
        self._executor.shutdown()

    def _inside(self, work: Callable[[], _Result]) -> _Result:
        with self._around():
            return work()
