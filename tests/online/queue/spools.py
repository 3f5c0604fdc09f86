"""A spool file by itself, its clock and its ledger."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from online.helpers import turn
from steelyard.online.queue._protocol import QueueCounts
from steelyard.online.queue._spool import Spool
from steelyard.online.queue._turns import Leased, Selected
from steelyard.scores import Evaluation

OPEN: list[Spool] = []


def opened(path: Path, **options: Any) -> Spool:
    """A spool that is closed when the test is over."""
    OPEN.append(Spool(path, **options))
    return OPEN[-1]


def spooled(name: str) -> Selected:
    return Selected(turn(name), 0.25, 0.5)


def result(leased: Leased) -> Evaluation:
    return Evaluation(record_id=leased.turn.record.id, scores=())


def check(spool: Spool) -> QueueCounts:
    """The ledger, checked against the rows themselves."""
    counts = spool.counts()
    assert counts.accepted == counts.pending + counts.evaluated + sum(counts.dead.values())
    assert (counts.bytes == 0) == (counts.pending == 0)
    with closing(sqlite3.connect(spool.path)) as db:
        (pending,) = db.execute("SELECT COUNT(*) FROM turns WHERE state IN ('waiting', 'leased')").fetchone()
    assert counts.pending == pending
    return counts
