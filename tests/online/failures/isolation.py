"""What may end a thread from inside, and how everything went all the same."""

from __future__ import annotations

import asyncio
from typing import Any

from online.helpers import check_law
from steelyard.online import Monitor

ENDINGS: list[type[BaseException]] = [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit]


def finished(monitor: Monitor, *, turns: int, seconds: float = 60) -> Any:
    """Everything went through, and the equations hold."""
    left = monitor.flush(seconds)
    stats = monitor.stats()
    # Told in one flush only.
    assert left <= sum(counts.lost for counts in stats.sinks.values()) and not stats.pending
    check_law(stats)
    assert stats.seen == turns
    for counts in stats.sinks.values():
        assert counts.waiting == 0
        assert counts.lost == sum(counts.lost_by.values())
    return stats
