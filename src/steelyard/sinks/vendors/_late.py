"""Sending to servers that know a trace only some seconds after it ended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from steelyard.errors import SinkError

_Item = TypeVar("_Item")


def send_when_there(
    items: Iterable[_Item], send: Callable[[_Item], None], *, patience: float, left_out: Counter[str]
) -> None:
    """Send each item; those whose trace is not found are tried again until `patience` seconds are over.

    Host applications export spans in batches, every five seconds by default, so a score may be first.

    Args:
        items: What to send.
        send: Sends one.
        patience: Seconds.
        left_out: Where items that never found their trace, or were refused, are counted.

    Raises:
        SinkError: If the server fails or refuses us altogether.
    """
    deadline = time.monotonic() + patience
    waiting = list(items)
    while waiting:
        missing = []
        for item in waiting:
            try:
                send(item)
            except SinkError as error:
                if error.cause == "not_found":
                    missing.append(item)
                elif error.cause == "rejected":
                    left_out["rejected"] += 1
                else:
                    raise
        if missing and time.monotonic() >= deadline:
            left_out["trace_not_found"] += len(missing)
            return
        waiting = missing
        if waiting:
            time.sleep(min(1.0, max(0.05, deadline - time.monotonic())))
