"""The `on_evaluation` callbacks: called in a thread of their own, where they may be slow or raise."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from steelyard._internal.warn_once import WarnOnce
from steelyard.recording import unrecorded
from steelyard.scores import Evaluation

Callback = Callable[[Evaluation], object]
"""Takes one finished Evaluation."""

_log = logging.getLogger("steelyard.online")
_WAITING = 1000


class Notifier:
    """Hands Evaluations to callbacks, in order. What comes while 1,000 wait is not delivered."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._callbacks: dict[int, Callback] = {}
        self._warn = WarnOnce(_log)
        self._waiting: deque[Evaluation] = deque()
        self._news = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None
        self._closed = False
        self.missed = 0

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Add a callback; returns the function that removes it."""
        number = next(self._numbers)
        self._callbacks[number] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(number, None)

        return unsubscribe

    def start(self) -> None:
        """Start the thread, if anybody listens: with the Monitor, since at exit it would be too late."""
        if self._thread is None and self._callbacks:
            thread = threading.Thread(target=self._run, name="steelyard-callbacks", daemon=True)
            with contextlib.suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def tell(self, evaluation: Evaluation) -> None:
        """Pass an Evaluation on, soon."""
        self.start()
        if self._thread is None:
            return
        with self._news:
            if len(self._waiting) >= _WAITING:
                self.missed += 1
                return
            self._waiting.append(evaluation)
            self._news.notify_all()

    def wait(self, timeout: float) -> None:
        """Wait until everything was delivered; returns at once inside a callback."""
        if self._thread is None or threading.current_thread() is self._thread:
            return
        with self._news:
            self._news.wait_for(lambda: not self._waiting and not self._busy, timeout)

    def close(self) -> None:
        """Let the thread end after what waits."""
        with self._news:
            self._closed = True
            self._news.notify_all()

    def after_fork(self) -> None:
        """Begin anew in a forked child, with the same callbacks."""
        self._waiting = deque()
        self._news = threading.Condition()
        self._busy = self._closed = False
        self._thread = None
        self.missed = 0

    def _run(self) -> None:
        with unrecorded():
            while (evaluation := self._next()) is not None:
                for number, callback in list(self._callbacks.items()):
                    self._call(number, callback, evaluation)

    def _next(self) -> Evaluation | None:
        with self._news:
            self._busy = False
            self._news.notify_all()
            self._news.wait_for(lambda: self._waiting or self._closed)
            self._busy = bool(self._waiting)
            return self._waiting.popleft() if self._waiting else None

    def _call(self, number: int, callback: Callback, evaluation: Evaluation) -> None:
        started = time.monotonic()
        try:
            callback(evaluation)
        except Exception:  # noqa: BLE001 - the user's function may raise anything
            self._warn(number, "an on_evaluation callback raised", exc_info=True)
        if (seconds := time.monotonic() - started) > 1:
            self._warn(number, "an on_evaluation callback took %.1f s", seconds)
