"""One run of a Monitor in one process: its ledger, its queue, its thread. A forked child begins a new one."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from steelyard._internal.threads import LoopThread
from steelyard.online._worker import Worker
from steelyard.online.config._options import MonitorOptions
from steelyard.online.delivery._callbacks import Notifier
from steelyard.online.delivery._delivery import Delivery
from steelyard.online.queue._feedback import Feedback
from steelyard.online.queue._memory import MemoryQueue

__all__ = ["Run"]

_log = logging.getLogger("steelyard.online")
_GRACE = 1.0
_LOOK = 0.02


class Run:
    """Everything of a Monitor that lives and dies with the process."""

    def __init__(self, plan: MonitorOptions, notifier: Notifier, *, on_start: Callable[[], None]) -> None:
        self.pid = os.getpid()
        self.intake = MemoryQueue(max_items=plan.max_queue, max_bytes=plan.max_queue_bytes, wake=self._wake)
        self.feedback = Feedback()
        self.delivery = Delivery(plan, notifier.tell)
        self.worker = Worker(plan, intake=self.intake, delivery=self.delivery, feedback=self.feedback)
        self.closed = False
        self._notifier = notifier
        self._on_start = on_start
        self._starting = threading.Lock()
        self._thread: LoopThread | None = None
        self._said = False

    def flush(self, timeout: float) -> int:
        """Wait until nothing is pending and every callback was told; returns what is still pending."""
        deadline = time.monotonic() + timeout
        if self._thread is not None and self._thread.current:
            return self.intake.counts().pending
        self._wake()
        left = self.intake.wait(timeout) + self._wait_for_spool(deadline)
        self._notifier.wait(max(0.0, deadline - time.monotonic()))
        return left

    def _wait_for_spool(self, deadline: float) -> int:
        spooling = self.worker.spooling
        if spooling is None or self._thread is None:
            return 0
        while (left := spooling.unfinished) and time.monotonic() < deadline:
            time.sleep(_LOOK)
        return left

    def start(self) -> None:
        """Start the thread now rather than with the first turn."""
        if self._thread is None:
            self._start()

    def close(self, timeout: float) -> int:
        """Flush, stop the thread, give up what is left; returns how much that was."""
        self.closed = True
        self.flush(timeout)
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(max(_GRACE, timeout / 2))
        self._notifier.close()
        return self.intake.abandon()

    def _wake(self) -> None:
        """Start the thread with the first turn; later, tell it that there is another."""
        thread = self._thread
        if thread is not None:
            thread.call(self.worker.nudge)
        elif self.intake.counts().pending:
            self._start()

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None or self.closed:
                return
            try:
                self._on_start()
                self._notifier.start()
                self.worker.start()
                thread = LoopThread(self.worker.run)
                thread.start()
                self._thread = thread
            except RuntimeError as error:
                self.intake.sleep()
                if not self._said:
                    self._said = True
                    _log.warning("the background thread cannot be started: %s; turns wait", error)
