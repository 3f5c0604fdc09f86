"""The one background thread and its event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable

from steelyard._internal.executor import DaemonExecutor

__all__ = ["LoopThread"]

_log = logging.getLogger("steelyard.online")


class LoopThread:
    """Runs one coroutine in a daemon thread with an event loop of its own.

    The loop is always asyncio's own selector loop, whatever policy the host has set. The host's loop, if it
    has one, is never touched, so it may be of any kind, and may close.
    """

    def __init__(self, main: Callable[[], Awaitable[None]], *, name: str = "steelyard") -> None:
        self._main = main
        self._name = name
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._task: asyncio.Future[None] | None = None
        self._executor: DaemonExecutor | None = None
        self._stopped = False

    def start(self) -> None:
        """Start the thread and its helpers, all from here: the program may end before the thread gets to it.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
        """
        self._executor = DaemonExecutor(2, name=f"{self._name}-io")
        try:
            self._thread.start()
        except RuntimeError:
            self._executor.shutdown()
            raise

    @property
    def current(self) -> bool:
        """Whether the caller runs in this thread."""
        return threading.current_thread() is self._thread

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the loop, soon; nothing happens where the loop has already closed."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def join(self, timeout: float) -> bool:
        """Cancel the coroutine and wait for the thread to end; False where it does not within the time."""
        self.call(self._cancel)
        if not self.current:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _cancel(self) -> None:
        # The loop may hear of this before the coroutine has begun.
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        assert self._executor is not None
        self._loop.set_default_executor(self._executor)
        try:
            self._loop.run_until_complete(self._supervise())
        except Exception:  # noqa: BLE001 - the last line of defence; there is nobody to raise to
            _log.exception("the background thread ended unexpectedly; turns are no longer evaluated")
        finally:
            self._executor.shutdown()
            with contextlib.suppress(Exception):
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _supervise(self) -> None:
        if self._stopped:
            return
        self._task = asyncio.ensure_future(self._main())
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        # What users' judges and sinks have started and forgotten would otherwise complain on stderr.
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1)
