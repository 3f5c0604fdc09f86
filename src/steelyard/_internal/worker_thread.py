"""One daemon thread for calls that may block, so that an exporter or server that hangs holds up nobody."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

from steelyard.errors import SinkError

__all__ = ["WorkerThread"]

_Result = TypeVar("_Result")


@dataclass(slots=True)
class _Job:
    work: Callable[[], Any]
    around: Callable[[], AbstractContextManager[object]]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]

    def run(self) -> None:
        result: Any = None
        problem: BaseException | None = None
        try:
            with self.around():
                result = self.work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the errand came from
            problem = error
        try:
            self.loop.call_soon_threadsafe(self._settle, result, problem)
        except RuntimeError:
            return  # the loop is closed: nobody waits for this any more

    def _settle(self, result: Any, problem: BaseException | None) -> None:
        if self.done.done():
            return
        if problem is None:
            self.done.set_result(result)
        else:
            self.done.set_exception(problem)


class WorkerThread:
    """Runs blocking calls one after the other in a daemon thread, each inside the context `around`.

    A thread of its own, and not the loop's executor: the interpreter waits for executors at exit, and would
    wait for a hanging exporter for ever.
    """

    def __init__(
        self, name: str, *, around: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> None:
        self._name = name
        self._around = around
        self._pid = 0
        self._errands: SimpleQueue[_Job | None] = SimpleQueue()
        self._running: _Job | None = None

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """The result of a call in the thread.

        Raises:
            SinkError: If an earlier call, which somebody has given up waiting for, still hangs.
        """
        running = self._running
        if self._pid == os.getpid() and running is not None and running.done.cancelled():
            raise SinkError(f"{self._name}: an earlier call still hangs", cause="hangs")
        try:
            self._start()
        except RuntimeError:
            # From Python 3.12 on an exiting interpreter may refuse threads; nobody else is held up then.
            with self._around():
                return work()
        loop = asyncio.get_running_loop()
        errand = _Job(work, self._around, loop, loop.create_future())
        self._errands.put(errand)
        result: _Result = await errand.done
        return result

    def close(self) -> None:
        """Let the thread end after what it is doing; a later call starts another."""
        if self._pid == os.getpid():
            self._errands.put(None)
        self._pid = 0

    def _start(self) -> None:
        if self._pid == os.getpid():
            return
        self._running = None
        self._errands = SimpleQueue()
        threading.Thread(target=self._work, args=(self._errands,), name=self._name, daemon=True).start()
        self._pid = os.getpid()

    def _work(self, errands: SimpleQueue[_Job | None]) -> None:
        while (errand := errands.get()) is not None:
            if errand.done.cancelled():
                continue
            self._running = errand
            errand.run()
            self._running = None
