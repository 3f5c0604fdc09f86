"""Which task or thread begins a span: what is asked, then answered in it may be one turn."""

from __future__ import annotations

import asyncio
import itertools
import threading
from weakref import WeakKeyDictionary

_numbers = itertools.count(1)
_tasks: WeakKeyDictionary[asyncio.Task[object], str] = WeakKeyDictionary()
_thread = threading.local()


def current_flow() -> str:
    """A name for the task that is running, or for the thread if it runs none; no two have the same."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is None:
        name = getattr(_thread, "name", None)
        if name is None:
            name = _thread.name = f"thread {next(_numbers)}"
        return str(name)
    if task not in _tasks:
        _tasks[task] = f"task {next(_numbers)}"
    return _tasks[task]
