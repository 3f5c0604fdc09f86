"""Waiting for something to be so, for events and not for seconds; and how busy the machine is."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable

_QUIET = 0.0026


def until(condition: Callable[[], object], *, seconds: float = 120.0) -> None:
    """Wait until a condition holds; it is looked at every hundredth of a second.

    Args:
        condition: What is waited for.
        seconds: How long before it is given up. On a machine where ten programs share a core a tenth of a
            second becomes several, so this only keeps a broken test from hanging.

    Raises:
        AssertionError: If it did not hold by then.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"this did not hold within {seconds:g} s"
        time.sleep(0.01)


def reply_of(url: str) -> str:
    """What a server replies, which may only just be starting."""
    deadline = time.monotonic() + 100
    while True:
        try:
            with urllib.request.urlopen(url, timeout=100) as reply:
                return str(reply.read().decode())
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def slowness() -> float:
    """How many times slower a core is now, where others share its caches and its clock."""
    text, began = "a\n" * 100_000, time.thread_time()
    json.loads(json.dumps(text))
    return max(1.0, (time.thread_time() - began) / _QUIET)
