"""Who listens: `on_evaluation` in a thread of its own, `on_decision` at once in the thread that decided."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait

from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_place
from steelyard._internal.threads import DaemonExecutor
from steelyard._internal.warn_once import WarnOnce
from steelyard.record import Record, TraceRef
from steelyard.recording import Draft, unrecorded
from steelyard.scores import Evaluation

Callback = Callable[[Evaluation], object]
"""Takes one finished Evaluation."""
DecisionCallback = Callable[[TraceRef | None, str], object]
"""Takes the trace of a turn that will not be judged, and why: a reason or cause of `Stats`."""

_log = SafeLogger("steelyard.online")
_WAITING = 1000  # a callback slower than the traffic misses turns rather than filling the memory


class Notifier:
    """Hands Evaluations to callbacks, in order. What comes while 1,000 wait is not delivered."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._callbacks: dict[int, Callback] = {}
        self._warn = WarnOnce(_log)
        self._begin()

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Add a callback; returns the function that removes it."""
        number = next(self._numbers)
        self._callbacks[number] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(number, None)

        return unsubscribe

    def start(self) -> None:
        """Start the thread, if anybody listens: with the Monitor, since at exit it would be too late."""
        if self._callbacks and not self._closed:
            with contextlib.suppress(RuntimeError):
                self._thread.start()

    def tell(self, evaluation: Evaluation) -> None:
        """Pass an Evaluation on, soon."""
        if not self._callbacks or self._closed:
            return
        if len(self._waiting) >= _WAITING:
            self.missed += 1
            return
        with contextlib.suppress(RuntimeError):
            told = self._thread.submit(self._tell_all, evaluation)
            self._waiting.add(told)
            told.add_done_callback(self._waiting.discard)

    def wait(self, timeout: float) -> None:
        """Wait until everything was delivered; returns at once inside a callback."""
        if threading.current_thread() is not self._working:
            wait(tuple(self._waiting), timeout)

    def close(self) -> None:
        """Let the thread end after what waits."""
        self._closed = True
        self._thread.shutdown()

    def after_fork(self) -> None:
        """Begin anew in a forked child, with the same callbacks."""
        self._begin()

    def _begin(self) -> None:
        self._thread = DaemonExecutor(1, name="steelyard-callbacks")
        self._working: threading.Thread | None = None
        self._waiting: set[Future[None]] = set()
        self._closed = False
        self.missed = 0

    def _tell_all(self, evaluation: Evaluation) -> None:
        self._working = threading.current_thread()
        with unrecorded():
            for number, callback in list(self._callbacks.items()):
                self._call(number, callback, evaluation)

    def _call(self, number: int, callback: Callback, evaluation: Evaluation) -> None:
        started = time.monotonic()
        try:
            callback(evaluation)
        except BaseException as error:  # noqa: BLE001 - the user's function may raise anything, also SystemExit
            self._warn(
                number,
                "an on_evaluation callback raised %s; correct it; nothing else happens",
                error_place(error),
            )
        if (seconds := time.monotonic() - started) > 1:
            self._warn(
                number,
                "an on_evaluation callback took %.1f s; make it shorter, or turns wait for it",
                seconds,
            )


class Decisions:
    """Tells callbacks at once, in the thread that decided."""

    def __init__(self) -> None:
        self._callbacks: tuple[DecisionCallback, ...] = ()
        self._warn = WarnOnce(_log)

    def subscribe(self, callback: DecisionCallback) -> Callable[[], None]:
        """Add a callback; returns the function that removes it."""
        self._callbacks = (*self._callbacks, callback)

        def unsubscribe() -> None:
            self._callbacks = tuple(known for known in self._callbacks if known is not callback)

        return unsubscribe

    def tell(self, turn: Record | Draft, reason: str) -> None:
        """A turn will not be judged."""
        for callback in self._callbacks:
            try:
                callback(turn.trace, reason)
            except BaseException as error:
                # In the main thread it may come out of a signal handler, and is the application's.
                if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
                    raise
                self._warn(
                    "raised",
                    "an on_decision callback raised %s; correct it; nothing else happens",
                    type(error).__name__,
                )
