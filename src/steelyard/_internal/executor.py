"""Threads for blocking work, which go on working while the interpreter exits.

The standard ThreadPoolExecutor refuses work as soon as the main thread has ended, before any `atexit`
function runs. The event loop resolves host names in its executor, so with the standard one no judge that has
a host name could be reached during the last flush.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

__all__ = ["DaemonExecutor", "in_executor"]

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


class DaemonExecutor(ThreadPoolExecutor):
    """A fixed number of daemon threads, all started at once: at exit no thread can be started any more."""

    def __init__(self, workers: int, *, name: str) -> None:
        super().__init__(max_workers=workers, thread_name_prefix=name)
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._crew = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(workers)
        ]
        for thread in self._crew:
            thread.start()

    def submit(
        self, fn: Callable[_Args, _Result], /, *args: _Args.args, **kwargs: _Args.kwargs
    ) -> Future[_Result]:
        """Run a function in one of the threads."""
        future: Future[_Result] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - belongs to whoever awaits the future
                future.set_exception(error)

        self._jobs.put(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after what is queued; never waits, as one of them may hang for good."""
        for _ in self._crew:
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


async def in_executor(
    executor: DaemonExecutor, function: Callable[_Args, _Result], *args: _Args.args, **kwargs: _Args.kwargs
) -> _Result:
    """Call a function in an executor, under the caller's context (and so its loop guard)."""
    call = partial(copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(executor, call)
