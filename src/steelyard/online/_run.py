"""One run of a Monitor in one process: its ledger, its queue, its thread. A forked child begins a new one."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from steelyard._internal.redact import error_words
from steelyard._internal.threads import LoopThread
from steelyard._internal.warn_once import WarnOnce
from steelyard.online._worker import Worker
from steelyard.online.config._options import MonitorOptions
from steelyard.online.delivery._callbacks import Notifier
from steelyard.online.delivery._delivery import Delivery
from steelyard.online.queue._feedback import Feedback
from steelyard.online.queue._inbox import Inbox

_log = logging.getLogger("steelyard.online")
_GRACE = 1.0
_LEAST = 0.2
_LOOK = 0.02


class Run:
    """Everything of a Monitor that lives and dies with the process."""

    def __init__(self, options: MonitorOptions, notifier: Notifier, *, on_start: Callable[[], None]) -> None:
        self.pid = os.getpid()
        feedback = Feedback()
        self.inbox = Inbox(
            max_items=options.max_queue,
            max_bytes=options.max_queue_bytes,
            wake=self._wake,
            feedback=feedback,
        )
        self.delivery = Delivery(options, notifier.tell)
        self.worker = Worker(options, inbox=self.inbox, delivery=self.delivery, feedback=feedback)
        self._notifier = notifier
        self._on_start = on_start
        self._starting = threading.Lock()
        self._thread: LoopThread | None = None
        self._warn = WarnOnce(_log)

    def flush(self, timeout: float) -> int:
        """Wait until nothing is pending and every callback was told; returns what is still pending."""
        deadline = time.monotonic() + timeout
        if self._thread is not None and self._thread.current:
            return self.inbox.counts().pending
        self._wake()
        left = self.inbox.wait(timeout) + self._wait_for_spool(deadline)
        self._notifier.wait(max(0.0, deadline - time.monotonic()))
        return left

    def _wait_for_spool(self, deadline: float) -> int:
        if self._thread is None:
            return 0
        while (left := self.worker.unfinished) and time.monotonic() < deadline:
            time.sleep(_LOOK)
        return left

    @property
    def restarts(self) -> int:
        """How often code in a judge or sink would have ended one of the threads."""
        return self.delivery.restarts + (self._thread.restarts if self._thread is not None else 0)

    def start(self) -> None:
        """Start the thread now rather than with the first turn."""
        if self._thread is None:
            self._start()

    def close(self, timeout: float) -> int:
        """Flush, stop the thread, give up what is left; returns how much that was."""
        self.inbox.closed = True
        self.flush(timeout)
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            ended = time.monotonic() + max(_GRACE, timeout / 2)
            thread.join(ended - time.monotonic())
            self.delivery.close(max(_LEAST, ended - time.monotonic()))
        self._notifier.close()
        return self.inbox.abandon()

    def _wake(self) -> None:
        """Start the thread with the first turn; later, tell it that there is another."""
        thread = self._thread
        if thread is not None:
            thread.call(self.worker.intake.nudge)
        elif self.inbox.counts().pending:
            self._start()

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None or self.inbox.closed:
                return
            try:
                self._on_start()
                self._notifier.start()
                self.worker.start()
                thread = LoopThread(self.worker.run)
                thread.start()
                self._thread = thread
            except (RuntimeError, OSError) as error:
                self.inbox.sleep()
                problem = error_words(error)
                self._warn("start", "the background thread cannot be started: %s; turns wait", problem)
