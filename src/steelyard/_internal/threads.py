"""Threads for blocking work and for an event loop: the one place that starts threads.

The standard ThreadPoolExecutor refuses work as soon as the main thread has ended, before any `atexit`
function runs, and the interpreter waits for its threads at exit, for ever where one hangs. The event loop
resolves host names in its executor, so with the standard one no judge that has a host name could be reached
during the last flush. The threads here are daemons, and work until the process is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from steelyard._internal.logs import SafeLogger
from steelyard._internal.native import Loop, RLock, SimpleQueue, get_ident, thread

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")
_Jobs = SimpleQueue[Callable[[], None] | None]
_Tasks = weakref.WeakSet[asyncio.Task[Any]]

_log = SafeLogger("steelyard")
_HELPERS = 10  # each call of foreign code that hangs takes one until it returns
# Doubled each time, for code that fails at once would keep a processor busy.
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 30.0


class ThreadHangs(RuntimeError):
    """All threads are held by calls that somebody has given up waiting for."""


class ExitInThread(RuntimeError):
    """A call raised what must not reach the loop that awaits it.

    SystemExit, KeyboardInterrupt and the like would end the loop; a StopIteration no future can hold, so that
    whoever awaits the call would wait for ever.
    """


class DaemonExecutor(ThreadPoolExecutor):
    """A few daemon threads; a forked child starts its own at its first call.

    Args:
        workers: How many threads. With 0, for callers that cannot tell what hangs, the spares are started one
            after the other, whenever all that run are busy.
        name: What they are called.
        spares: How many threads that hang may be replaced. A thread hangs when the task that awaits its call
            is cancelled, by a timeout say, and the call goes on. One whose call returns after all is used
            again. Without spares, or when they are used up, `run` raises `ThreadHangs`.
    """

    def __init__(self, workers: int = 1, *, name: str, spares: int = 0) -> None:
        super().__init__(max_workers=workers or spares, thread_name_prefix=name)
        self._workers = workers
        self._name = name
        self._spares = spares
        # Counted only without workers; otherwise whoever stops waiting tells what hangs.
        self._open: set[Future[Any]] = set()
        self._numbers = itertools.count()
        self._pid = 0
        self._jobs: _Jobs = SimpleQueue()
        self._hanging: set[Future[Any]] = set()
        self._replaced = 0

    def start(self) -> None:
        """Start the threads now rather than with the first call: at exit no thread can be started any more.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
        """
        # By process, since a forked child has none of its parent's threads.
        if self._pid == os.getpid():
            return
        self._jobs, self._hanging, self._replaced = SimpleQueue(), set(), 0
        self._open = set()
        try:
            for _ in range(self._workers):
                self._add_thread()
        except RuntimeError:
            # Threads that were started end at this; without it they would wait for ever.
            self._jobs.put(None)
            raise
        self._pid = os.getpid()
        # Threads hold the queue alone: an executor that is forgotten rather than shut down lets them go too.
        weakref.finalize(self, _let_go, self._jobs, self._workers + self._spares).atexit = False

    def submit(
        self, fn: Callable[_Args, _Result], /, *args: _Args.args, **kwargs: _Args.kwargs
    ) -> Future[_Result]:
        """Call a function in one of the threads; without workers, in this one where none can be started.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
        """
        self.start()
        future: Future[_Result] = Future()
        future._condition = threading.Condition(RLock())

        def job() -> None:
            # Asked first: a future that was cancelled while it waited must not be run.
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - belongs to whoever awaits the future
                future.set_exception(_as_exception(error))

        if not self._workers:
            self._make_room(future)
        if self._workers or self._replaced:
            self._jobs.put(job)
        else:
            job()  # from Python 3.12 on an exiting interpreter refuses threads
        return future

    async def run(
        self, function: Callable[_Args, _Result], /, *args: _Args.args, **kwargs: _Args.kwargs
    ) -> _Result:
        """The result of a call in one of the threads, under the caller's context variables.

        Raises:
            ThreadHangs: If every thread is held by a call that nobody waits for any more.
        """
        # Context variables tell that our own work is not recorded, also in threads.
        call = partial(copy_context().run, function, *args, **kwargs)
        # Only where no spare could take it: a call that is queued behind hanging ones never runs.
        if self._pid == os.getpid() and len(self._hanging) >= self._workers + self._replaced:
            raise ThreadHangs(f"{self._name}: an earlier call still hangs")
        try:
            future = self.submit(call)
        except RuntimeError:
            # From Python 3.12 on an exiting interpreter may refuse threads; nobody else is held up then.
            return call()
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._given_up(future)
            raise

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after what is queued; a later call starts others. Never waits: one may hang."""
        if self._pid == os.getpid():
            _let_go(self._jobs, self._workers + self._replaced)
        self._pid = 0

    def _given_up(self, future: Future[_Result]) -> None:
        hanging = self._hanging
        hanging.add(future)
        # A call that comes back after all frees its thread, which is used again.
        future.add_done_callback(hanging.discard)
        self._add_spare()

    def _make_room(self, future: Future[_Result]) -> None:
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        if len(self._open) > self._workers + self._replaced:
            self._add_spare()

    def _add_spare(self) -> None:
        if self._replaced < self._spares:
            with contextlib.suppress(RuntimeError):
                self._add_thread()
                self._replaced += 1

    def _add_thread(self) -> None:
        number = next(self._numbers)
        name = f"{self._name}-{number}" if number else self._name
        thread(_work, self._jobs, name=name).start()


def _as_exception(error: BaseException) -> Exception:
    """The error as a future and a loop can pass it on."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    problem = ExitInThread(f"a call raised {type(error).__name__}")
    problem.__cause__ = error
    return problem


def _let_go(jobs: _Jobs, threads: int) -> None:
    for _ in range(threads):
        jobs.put(None)


def _work(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # a job must not live until the next one comes


class LoopThread:
    """Runs one coroutine in a daemon thread with an event loop of its own.

    The loop is always asyncio's own selector loop, whatever policy the host has set. The host's loop, if it
    has one, is never touched, so it may be of any kind, and may close.

    Nothing that code in the loop does ends the thread: SystemExit and KeyboardInterrupt, which leave the
    loop whatever task raises them, end that task alone, a loop that somebody stops runs on, and a coroutine
    that is ended by anybody but `join` begins again after a pause.

    Args:
        main: The coroutine function to run.
        name: What the thread is called; its helpers for blocking calls, such as the resolution of names, are
            `NAME-io`; they are started by the first of these.
    """

    def __init__(self, main: Callable[[], Awaitable[None]], *, name: str = "steelyard") -> None:
        self._main = main
        self._name = name
        # Made here and not in the thread, so that `call` can reach it before the thread has begun.
        self._loop = Loop()
        self._thread = thread(self._run, name=name)
        self._helpers = DaemonExecutor(0, name=f"{name}-io", spares=_HELPERS)
        self._task: asyncio.Future[None] | None = None
        # Not `asyncio.all_tasks`: that walks through the tasks of all loops, once for each loop that ends.
        self._tasks: _Tasks = weakref.WeakSet()
        self._loop.set_task_factory(partial(_noted, self._tasks))
        self.stopped = False
        """Whether somebody has asked for the end."""
        self.restarts = 0
        """How often something in the loop ended more than itself: a task by SystemExit, or the coroutine."""

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: If the interpreter refuses new threads.
        """
        try:
            self._thread.start()
        except RuntimeError:
            self._loop.close()
            raise

    @property
    def current(self) -> bool:
        """Whether the caller runs in this thread."""
        return self._thread.ident == get_ident()

    @property
    def ended(self) -> bool:
        """Whether the thread has begun and come to its end."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the loop, soon; nothing happens where the loop has already closed."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        """Cancel the coroutine, and let the thread end; does not wait for it."""
        if not self.stopped:
            self.stopped = True
            self.call(self._cancel)

    def join(self, timeout: float) -> bool:
        """Cancel the coroutine and wait for the thread to end; False where it does not within the time."""
        self.stop()
        # A thread cannot join itself, nor be joined before it has begun.
        if self._thread.ident is not None and not self.current:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _cancel(self) -> None:
        # The loop may hear of this before the coroutine has begun.
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_default_executor(self._helpers)
        try:
            self._complete(self._loop.create_task(self._supervise()))
        except BaseException as error:  # noqa: BLE001 - the last line of defence; there is nobody to raise to
            _log.error("the thread %s has ended: %s", self._name, type(error).__name__)
        finally:
            self._helpers.shutdown()
            with contextlib.suppress(BaseException):
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _complete(self, task: asyncio.Task[None]) -> None:
        """Run the loop until a task is done, also where another one has stopped it, or raised SystemExit."""
        while not task.done():
            try:
                self._loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt, RuntimeError) as error:
                # Only a closed loop is an end; `loop.stop()` in a judge raises RuntimeError here too.
                if self._loop.is_closed():
                    raise
                self._disturbed(error)

    async def _supervise(self) -> None:
        """Run the coroutine, again and again if it is ended by anything but `join` or itself."""
        pause = _FIRST_PAUSE
        while not self.stopped:
            task = self._task = asyncio.ensure_future(self._main())
            # Not `await`: a coroutine that is cancelled by others would cancel this one.
            await _patiently(task)
            if self.stopped:
                break
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if error is None:
                break
            self._disturbed(error)
            # A task, so that `join` can end the pause as it ends the coroutine.
            self._task = asyncio.ensure_future(asyncio.sleep(pause))
            await _patiently(self._task)
            pause = min(2 * pause, _LONGEST_PAUSE)
        # What users' judges and sinks have started and forgotten would otherwise complain on stderr.
        left = set(self._tasks) - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1)

    def _disturbed(self, error: BaseException) -> None:
        self.restarts += 1
        if self.restarts == 1:
            _log.error(
                "%s in a judge, a sink or the like would have ended the thread %s; it goes on",
                type(error).__name__,
                self._name,
            )


def _noted(
    tasks: _Tasks, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _Result], **options: Any
) -> asyncio.Task[_Result]:
    task = asyncio.Task(work, loop=loop, **options)
    tasks.add(task)
    return task


async def _patiently(task: asyncio.Future[None]) -> None:
    """Wait for the end of a task, also where somebody else's code cancels everything in the loop."""
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([task])


async def leave(task: asyncio.Task[Any], seconds: float) -> None:
    """Cancel a task of other people's code and wait so long for its end; one that goes on is left behind."""
    task.cancel()
    task.add_done_callback(take_note)
    # `asyncio.wait` raises nothing of the task's, and does not cancel it a second time.
    await asyncio.wait([task], timeout=seconds)


def take_note(task: asyncio.Future[Any]) -> None:
    """Ask a task that has ended why it failed, where nobody else does: asyncio would complain."""
    if not task.cancelled():
        task.exception()


def run_anywhere(work: Coroutine[Any, Any, _Result], *, name: str = "steelyard") -> _Result:
    """Run a coroutine in a loop of our own, in a thread of that name where a loop runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started = threading.Event()
    stop: list[Callable[[], object]] = []

    async def stoppable() -> _Result:
        task = asyncio.current_task()
        assert task is not None
        stop.append(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        started.set()
        return await work

    with ThreadPoolExecutor(1, thread_name_prefix=name) as thread:
        try:
            return thread.submit(lambda: asyncio.run(stoppable())).result()
        except KeyboardInterrupt:  # of a notebook's cell: nothing more is to be asked, or paid for
            started.wait(1)
            with contextlib.suppress(RuntimeError):  # the loop has closed in the meantime
                for cancel in stop:
                    cancel()
            raise
