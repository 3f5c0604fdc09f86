"""What Monitors and a spool are doing, what became of every turn, what judging cost, and how alarms stand."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from steelyard._internal.text import error_words
from steelyard.alarms import Alarm, AlarmStatus, AlarmWatcher, alarms_from
from steelyard.errors import ConfigurationError
from steelyard.online import CanaryReading, QueueCounts, Spool, SpoolSettings
from steelyard.report import remaining_turns
from steelyard.results import ObservedMonitor, ResultsReader
from steelyard.results.looks import Spending
from steelyard.results.queries import Scope, StoredCanaries, StoredRun

if TYPE_CHECKING:
    from steelyard.view._site import Site

_RUNS = 12
_DAY = 86_400.0
_COUNTED = ("seen", "accepted", "evaluated", "pending", "spooled", "abandoned")
_BY_REASON = ("skipped", "dead")


class LiveLook:
    """Looks at a Monitor in this process and at a spool file, and at the ledgers beside the results."""

    def __init__(self, *, monitor: ObservedMonitor | None, spool: Path | None) -> None:
        self._monitor, self._path = monitor, spool
        if spool is not None:
            if not spool.is_file():
                raise ConfigurationError(f"there is no spool {str(spool)!r}; check its path")
            SpoolSettings(path=spool)  # refuses what is not one

    def now(self, results: ResultsReader) -> dict[str, Any]:
        """The Monitor of this process and those that stored counts within a day; and the spool."""
        at = time.time()
        # Monitors that ended long ago are of no interest here; the report has them.
        rows: list[dict[str, Any]] = [
            {"where": _where(run), "age": max(at - run.updated_at, 0.0), "counts": _turns(run.counts)}
            for run in results.runs(limit=_RUNS)
            if at - run.updated_at < _DAY
        ]
        spool, problem = self._counts()
        if self._monitor is not None:
            stats = self._monitor.stats()
            rows.insert(0, {"where": "this process", "age": None, "counts": _turns(stats)})
            spool = spool or stats.spool
        return {"at": at, "rows": rows, "spool": spool, "problem": problem}

    def canaries(self, results: ResultsReader) -> list[tuple[str, CanaryReading | StoredCanaries]]:
        """What probes with a known answer say of judges, and whose Monitor asked them; the latest first."""
        stats = None if self._monitor is None else self._monitor.stats()
        own = getattr(stats, "canaries", None)
        found: list[tuple[str, CanaryReading | StoredCanaries]] = [("this process", own)] if own else []
        # What this process has stored is older than what it says.
        stored = (run for run in results.runs(limit=_RUNS) if not (own and run.pid == os.getpid()))
        found += [(_where(run), run.canaries) for run in stored if run.canaries is not None]
        return found

    def _counts(self) -> tuple[QueueCounts | None, str]:
        if self._path is None:
            return None, ""
        if not self._path.is_file():
            return None, f"the spool {str(self._path)!r} is gone"
        try:
            # It takes no leases; the time only must not lengthen what other processes wait for.
            with closing(Spool(self._path, lease_seconds=0.0)) as spool:
                return spool.counts(), ""
        except ConfigurationError as error:
            return None, str(error)
        except sqlite3.Error as error:
            return None, f"the spool {str(self._path)!r} cannot be read: {error_words(error)}"


def _where(run: StoredRun) -> str:
    return f"{run.host}, process {run.pid}"


def _turns(stats: object) -> dict[str, int]:
    numbers = {name: getattr(stats, name) for name in _COUNTED}
    return numbers | {name: sum(getattr(stats, name, {}).values()) for name in _BY_REASON}


def coverage(site: Site, request: Request) -> Response:
    """From seen to judged by the ledger, scores without a value, money by day and by metric."""
    everything = Scope()
    with site.open() as results:
        funnel = results.funnel(everything)
        days = results.spending()
        metrics = results.spending_by_metric()
        missing = results.missing(everything)
        totals = results.totals(everything)
    return site.render(
        request,
        "coverage.html",
        f=funnel,
        rest=remaining_turns(funnel) if funnel else [],
        days=days,
        metrics=metrics,
        missing=missing,
        totals=totals,
        charts=[_money(days)],
    )


def _money(days: list[Spending]) -> dict[str, Any]:
    """Money by day, or turns where no price is known."""
    is_priced = any(day.cost is not None for day in days)
    at = [datetime.fromisoformat(day.name).replace(tzinfo=UTC).timestamp() for day in days]
    return {
        "kind": "bars",
        "times": at,
        "values": [day.cost if is_priced else day.turns for day in days],
        "unit": "$" if is_priced else "",
    }


def alarms(site: Site, request: Request) -> Response:
    """The alarms of `steelyard.toml`: where each stands, its evidence over time, what was told."""
    given, status = _status(site)
    return site.render(
        request, "alarms.html", alarms=given, stands=status, charts=[_chart(one) for one in status]
    )


def went_off(site: Site) -> list[tuple[float, str]]:
    """When alarms went off, and their names; of those that were told lately."""
    told = [one for status in _status(site)[1] for one in status.messages]
    events = {one.event: (one.created, one.name) for one in told if one.body.get("kind") == "fell"}
    return sorted(events.values())


def _status(site: Site) -> tuple[Sequence[Alarm], list[AlarmStatus]]:
    """All, and where they stand; nothing where no turn has come yet: a look must not make the file."""
    given = alarms_from(site.settings.alarm) if site.settings else ()
    file = site.settings.alarm_file if site.settings else ""
    if not given or not Path(file).is_file():
        return given, []
    with closing(AlarmWatcher(given, file=file)) as watcher:
        return given, watcher.status()


def _chart(one: AlarmStatus) -> dict[str, Any]:
    return {
        "kind": "evidence",
        "times": [at for at, _ in one.course],
        # On a scale of powers: less than a twentieth of the first stake is as good as none.
        "values": [max(stake, 0.05) for _, stake in one.course],
        "bar": one.bar,
    }
