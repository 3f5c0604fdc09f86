"""Threads, locks and loops of the operating system, whatever `threading` has become.

Under gevent it starts greenlets, which share one thread: event loops cannot run there side by side, and its
locks do not wake a thread of the operating system. Where the standard library was patched before this module
is imported, gevent says what was there; what is patched later does not change the names here.
"""

from __future__ import annotations

import _thread
import asyncio
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from selectors import BaseSelector
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from queue import SimpleQueue as SimpleQueue
    from threading import Lock as Lock
    from threading import RLock as RLock
    from threading import get_ident as get_ident


def _original(module: str, name: str) -> Any:
    found = import_module(module)
    patcher = sys.modules.get("gevent.monkey")
    return getattr(found, name) if patcher is None else patcher.get_original(module, name)


if not TYPE_CHECKING:
    Lock, RLock = _original("_thread", "allocate_lock"), _original("_thread", "RLock")
    get_ident = _original("_thread", "get_ident")
    SimpleQueue = _original("_queue", "SimpleQueue")
_selector: Callable[[], BaseSelector] = _original("selectors", "DefaultSelector")
_start_new_thread: Callable[[Callable[[], None], tuple[()]], int] = _original("_thread", "start_new_thread")


def thread(target: Callable[..., object], *args: object, name: str) -> threading.Thread:
    """A daemon thread, not started yet."""
    kind = threading.Thread if _thread.start_new_thread is _start_new_thread else _Thread
    return kind(target=target, args=args, name=name, daemon=True)


class Loop(asyncio.SelectorEventLoop):
    """A loop that could not be made, without file descriptors, is not to be closed: its end would say so."""

    _made = False

    def __init__(self) -> None:
        super().__init__(_selector())
        self._made = True

    def is_closed(self) -> bool:
        return not self._made or super().is_closed()


class _Thread(threading.Thread):
    """A thread that `threading` does not know."""

    _number: int | None = None

    def start(self) -> None:
        self._running = Lock()
        self._running.acquire()
        self._number = _start_new_thread(self._run_and_tell, ())

    def _run_and_tell(self) -> None:
        try:
            self.run()
        finally:
            self._running.release()

    @property
    def ident(self) -> int | None:
        return self._number

    def is_alive(self) -> bool:
        return self._number is not None and self._running.locked()

    def join(self, timeout: float | None = None) -> None:
        if self._number is not None and self._running.acquire(timeout=-1 if timeout is None else timeout):
            self._running.release()
