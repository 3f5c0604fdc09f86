"""The counts that Monitors stored beside their results, added up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from steelyard._internal.text import shorten
from steelyard.report.queries import Funnel, StoredCanaries, StoredRun

_PLAIN = ("seen", "accepted", "evaluated", "pending", "spooled", "abandoned")


def funnel_of(rows: Iterable[tuple[float, float, str]]) -> Funnel | None:
    """The sum over runs (start, end, counts as JSON); unreadable ones are left out. None of no runs."""
    begins, ends, floors = [], [], []
    sums: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {"skipped": Counter(), "dead": Counter()}
    for first, last, text in rows:
        if (counts := _parsed(text)) is None:
            continue
        begins.append(first)
        ends.append(last)
        floor = counts.get("floor")
        # A Monitor whose selection is code of the user's own cannot say it.
        if isinstance(floor, float | int) and 0 < floor <= 1:
            floors.append(float(floor))
        sums.update({name: _whole(counts.get(name)) for name in _PLAIN})
        for name, found in reasons.items():
            by_reason = counts.get(name)
            if isinstance(by_reason, Mapping):
                found.update({str(reason): _whole(count) for reason, count in by_reason.items()})
    if not begins:
        return None
    return Funnel(
        runs=len(begins),
        first=min(begins),
        last=max(ends),
        skipped=_most_frequent(reasons["skipped"]),
        dead=_most_frequent(reasons["dead"]),
        floor=min(floors, default=None),
        **{name: sums[name] for name in _PLAIN},
    )


def run_of(
    run: str, host: str, pid: int, started_at: float, updated_at: float, counts: str
) -> StoredRun | None:
    """One Monitor from its row; None if its counts cannot be read."""
    found = funnel_of([(started_at, updated_at, counts)])
    if found is None:
        return None
    canaries = _canaries((_parsed(counts) or {}).get("canaries"))
    return StoredRun(
        run=run,
        host=host,
        pid=pid,
        started_at=started_at,
        updated_at=updated_at,
        counts=found,
        canaries=canaries,
    )


def _canaries(stored: object) -> StoredCanaries | None:
    """None where there are none, or they cannot be read."""
    if not isinstance(stored, Mapping):
        return None
    try:
        return StoredCanaries(
            judge=str(stored["judge"]),
            state=str(stored["state"]),
            **{name: int(stored[name]) for name in ("probes", "asked", "right")},
            low=float(stored["low"]),
            high=float(stored["high"]),
            changed_at=None if stored["changed_at"] is None else float(stored["changed_at"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _most_frequent(counts: Counter[str]) -> dict[str, int]:
    return {reason: count for reason, count in counts.most_common() if count}


def remaining_turns(funnel: Funnel) -> list[tuple[str, int]]:
    """What else became of picked turns, in words."""
    return [
        ("queued or being judged when last stored", funnel.pending),
        ("handed to the spool", funnel.spooled),
        ("given up at exit", funnel.abandoned),
    ]


def words(reason: str) -> str:
    """A reason as it is read."""
    return shorten(reason.replace("_", " "), 60)


def _parsed(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
