"""What holds of every Monitor with a spool."""

from __future__ import annotations

from online.helpers import check_law
from steelyard.online import QueueCounts, Stats


def check_spool(stats: Stats) -> QueueCounts:
    check_law(stats)
    assert stats.spool is not None
    assert stats.spool.accepted == stats.spool.pending + stats.spool.evaluated + sum(
        stats.spool.dead.values()
    )
    return stats.spool
