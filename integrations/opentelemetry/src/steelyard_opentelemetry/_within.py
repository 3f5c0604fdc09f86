"""Work that may take longer than whoever waits for it has time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def done_within(deadline: float, work: Callable[[], bool]) -> bool:
    """Do work on a thread of its own, which goes on if the time is up.

    Args:
        deadline: When to stop waiting, on the monotonic clock.
        work: Says whether all of it is done.

    Returns:
        Whether all of it was done in time.
    """
    done: list[bool] = []
    thread = threading.Thread(target=lambda: done.append(work()), name="steelyard-flush", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is shutting down
        return work()
    thread.join(max(0.0, deadline - time.monotonic()))
    return bool(done and done[0])
