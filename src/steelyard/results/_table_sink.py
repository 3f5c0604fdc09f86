"""What the sinks that write our tables share: how long results are kept, counts, bars by earlier scores."""

from __future__ import annotations

import json
import os
import platform
import re
import time
import uuid
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from statistics import median
from typing import Any, ClassVar, Final, Protocol, runtime_checkable
from weakref import ref

import numpy as np

from steelyard._internal.logs import SafeLogger
from steelyard._internal.text import error_words
from steelyard.errors import ConfigurationError
from steelyard.results._schema import COUNT_REPLAY, Execute
from steelyard.results.counts import ScoreCounts, ScoreLedger
from steelyard.results.queries import StoredCanaries
from steelyard.scores import Evaluation, Score

_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    **{unit: ("seconds", seconds) for unit, seconds in {"h": 3600, "d": 86_400, "w": 604_800}.items()},
    **{unit: ("bytes", size) for unit, size in {"kb": 1e3, "mb": 1e6, "gb": 1e9}.items()},
    "": ("turns", 1),
    "turns": ("turns", 1),
}
_STEP: Final = 200
"""Turns deleted in one transaction: some milliseconds, so that writers and readers hardly notice."""
_JUMP: Final = 3600.0
"""So far ahead within one step is no drift."""
_BELIEVED: Final = 86_400.0
"""Seconds after which a clock that jumped ahead is taken to be right: a wrong one is set back by then."""
_LIMIT: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s?([a-z]{0,5})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Retention:
    """What is kept; whatever exceeds any of the limits goes, the oldest first."""

    seconds: float | None = None
    """Age since the evaluation."""
    turns: int | None = None
    """Number of evaluated turns."""
    bytes: int | None = None
    """Size of the file, without what is free in it."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (isinstance(value, bool) or not value > 0):
                raise ConfigurationError(f"{field.name} to keep must be more than 0, not {value!r}")


class SteadyClock:
    """The time of day by which a sink deletes: what a clock that jumped ahead makes old is gone for good."""

    def __init__(self) -> None:
        self._day, self._running = time.time(), _running()

    def now(self) -> float:
        """The time; after a jump ahead, for a day, the one that it would be without."""
        day, running = time.time(), _running()
        expected = self._day + running - self._running
        if day - expected < _JUMP or running - self._running > _BELIEVED:
            self._day, self._running = day, running
            return day
        return expected


def _running() -> float:
    """Seconds that the machine has been on; where the system tells, with those in which it slept."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


def retention_from(given: str | int | Retention) -> Retention:
    """Limits as they are written: `"30d"`, `"12h"`, `"500MB"`, `100_000` (turns), or `"30d, 2GB"`."""
    if isinstance(given, Retention):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return Retention(turns=given)
    limits: dict[str, float] = {}
    for part in given.lower().split(",") if isinstance(given, str) else [""]:
        match = _LIMIT.fullmatch(part.strip())
        kind, factor = _UNITS.get(match[2], ("", 0.0)) if match else ("", 0.0)
        if match is None or not kind or kind in limits:
            raise ConfigurationError(
                f"keep must be an age ('30d', '12h'), a size ('2GB') or a number of turns, not {given!r}"
            )
        limits[kind] = float(match[1]) * factor
    return Retention(
        seconds=limits.get("seconds"),
        turns=int(limits["turns"]) if "turns" in limits else None,
        bytes=int(limits["bytes"]) if "bytes" in limits else None,
    )


def oldest_beyond(execute: Execute, keep: Retention, *, now: float, turns: int, used: int = 0) -> list[str]:
    """The records of the oldest turns that exceed a limit, at most 200 of them."""
    excess = 0 if keep.turns is None else turns - keep.turns
    if keep.bytes is not None and used > keep.bytes:
        excess = max(excess, -int(-turns * (used - keep.bytes) // used))
    before = float("-inf") if keep.seconds is None else now - keep.seconds
    query = "SELECT record_id, happened_at FROM evaluations ORDER BY happened_at, record_id LIMIT :step"
    oldest = execute(query, {"step": _STEP}).fetchall()
    return [record for place, (record, at) in enumerate(oldest) if place < excess or at < before]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruned:
    """What pruning did."""

    turns: int
    left: int
    bytes_before: int
    """Size of the results before, in bytes, without what was free in their file."""
    bytes_after: int
    """Their size now. Postgres keeps the space of deleted rows, and uses it again."""


def prune(path: str | os.PathLike[str], *, keep: str | int | Retention) -> Pruned:
    """Delete the oldest results that exceed a limit.

    Others may read and write meanwhile: it is done in steps of 200 turns, each a transaction of milliseconds.

    Args:
        path: A file that `SQLiteSink` wrote, or the `postgresql://` address that `PostgresSink` writes to.
        keep: What to keep, as for these sinks.

    Raises:
        ConfigurationError: If there is no such file, it is not a results file, or `keep` means nothing there.
        MissingDependency: If psycopg is not installed.
        SinkError: If the database cannot be used.
        sqlite3.Error: If the file cannot be written, e.g. because another writer holds it for 10 seconds.
    """
    if isinstance(path, str) and path.startswith(("postgresql://", "postgres://")):
        from steelyard.results import PostgresSink

        return PostgresSink(path, keep=keep).prune()
    from steelyard.results._sqlite_sink import prune_file

    return prune_file(path, retention_from(keep))


WEEK: Final = 7 * 86_400.0
WEEKS: Final = 8
"""Weeks that are looked back."""
_SHARE: Final = 0.05
_LEAST: Final = 200
"""Scores below which a bar would be an anecdote."""
_LEAST_A_WEEK: Final = 50
_EARLIER: Final = """SELECT happened_at, value, inclusion_probability FROM scores
    WHERE metric = :metric AND status = 'scored' AND value IS NOT NULL AND happened_at >= :since
    AND judge = :judge AND coalesce(prompt_version, '') = :prompt
    AND coalesce(metric_version, '') = :version AND options = :options
    ORDER BY happened_at DESC LIMIT 50000"""
"""The scores of one metric that were made as a given one was."""
_EVERY: Final = 5.0
_COUNTS: Final = ("seen", "accepted", "pending", "evaluated", "abandoned", "spooled", "skipped", "dead")
_OF_CANARIES: Final = tuple(field.name for field in fields(StoredCanaries))
_log = SafeLogger("steelyard.sinks")
_LOOK: Final = 60.0
"""Seconds between two looks at what exceeds the limits of `keep`."""


class ObservedMonitor(Protocol):
    """Something with the statistics of a `steelyard.Monitor`."""

    def stats(self) -> Any:
        """Its counts at this moment, as a `steelyard.online.Stats`."""


@runtime_checkable
class KnowsEarlierScores(Protocol):
    """A sink that can say what is usual, by what it has stored."""

    def baseline(self, like: Score, *, now: float) -> float | None:
        """The bar for scores made as this one was; None while too few are stored. May block."""


def _bar_of(rows: Iterable[tuple[float, float, float]], *, lower_is_better: bool) -> float | None:
    """The value that 95 % of turns reach in the median week; a bad week or two do not move it.

    Of time, value and inclusion probability of earlier scores; None if fewer than 200, or of less than a
    week.
    """
    found = sorted(rows)
    if len(found) < _LEAST or found[-1][0] - found[0][0] < WEEK:
        return None
    weeks: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for at, value, inclusion in found:
        weeks[int((found[-1][0] - at) // WEEK)].append((value, 1 / inclusion))
    ends = [_end(week, lower_is_better) for week in weeks.values() if len(week) >= _LEAST_A_WEEK]
    return median(ends) if ends else None


def _end(week: list[tuple[float, float]], lower_is_better: bool) -> float:
    """The weighted quantile beyond which the worst 5 % of turns lie."""
    values, weights = np.array(sorted(week, reverse=lower_is_better)).T
    return float(values[np.searchsorted(np.cumsum(weights), _SHARE * weights.sum())])


def _counts_of(monitor: Any) -> dict[str, Any]:
    stats = monitor.stats()
    counts = {name: getattr(stats, name) for name in _COUNTS}
    found = {name: value if isinstance(value, int) else dict(value) for name, value in counts.items()}
    if (canaries := getattr(stats, "canaries", None)) is not None:
        found["canaries"] = {name: getattr(canaries, name) for name in _OF_CANARIES}
    if (screen := getattr(stats, "screen", None)) is not None:
        found["by_judge"] = screen.judged
    # What no picked turn lies below: turns that are seldom picked may be absent from a report's period.
    floor = getattr(getattr(monitor, "options", None), "floor", None)
    return found if floor is None else {**found, "floor": floor}


class TablesSink(ABC):
    """Counts of Scores, counts of Monitors, and the moments at which old results are deleted.

    Turns that were not judged have no row among the results; without each Monitor's counts in the `ledger`
    table nobody could tell later how many there were, and why.
    """

    _failures: ClassVar[tuple[type[Exception], ...]]
    """What a database that cannot be read raises."""

    def __init__(self, name: str, keep: Retention | None) -> None:
        self.name = name
        self._keep = keep
        self._clock = SteadyClock()
        self._next_look = self._next_counts = 0.0
        self._ledger = ScoreLedger(name)
        self._monitors: list[ref[ObservedMonitor]] = []
        self._runs: dict[tuple[int, int], tuple[str, float]] = {}

    @property
    def counts(self) -> ScoreCounts:
        """What became of the Scores this sink was given."""
        return self._ledger.counts

    def observe(self, monitor: ObservedMonitor) -> None:
        """Store what the Monitor says of turns that were not judged, in the `ledger` table."""
        self._monitors.append(ref(monitor))
        self._run_of(len(self._monitors) - 1)

    def baseline(self, like: Score, *, now: float) -> float | None:
        """The bar of `Metric(threshold="baseline")`: what 95 % of earlier turns reached, if that is known."""
        made = like.provenance
        values = {
            **{"metric": like.metric, "options": like.options, "since": now - WEEKS * WEEK},
            "judge": made.judge if made else "",
            "prompt": made.prompt_version if made else "",
            "version": made.metric_version if made else "",
        }
        try:
            with self._reading() as execute:
                rows = execute(_EARLIER, values).fetchall()
        except self._failures:
            return None
        return _bar_of(rows, lower_is_better=like.direction == "lower")

    def count_replay(self, day: str, *, most: int) -> bool:
        """Count one more call of an experiment on a day; False if all processes together made `most`.

        Raises:
            ConfigurationError: If the database cannot be opened; and the database's own errors.
        """

        def count(execute: Execute) -> bool:
            execute(COUNT_REPLAY[0], {})
            return execute(COUNT_REPLAY[1], {"day": day, "most": most}).fetchone() is not None

        return self._alone(count)

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Execute]:
        """What runs queries."""

    @abstractmethod
    def _alone(self, work: Callable[[Execute], bool]) -> bool:
        """Do some work in a transaction, while nobody else writes."""

    def _counts_of_monitors(self) -> list[dict[str, Any]]:
        self._next_counts = time.monotonic() + _EVERY
        rows = []
        for number, alive in enumerate(self._monitors):
            if (monitor := alive()) is not None:
                run, started = self._run_of(number)
                counts = json.dumps(_counts_of(monitor), separators=(",", ":"))
                place = {"run": run, "host": platform.node(), "pid": os.getpid()}
                rows.append({**place, "started_at": started, "updated_at": time.time(), "counts": counts})
        return rows

    def _run_of(self, number: int) -> tuple[str, float]:
        """A forked child counts from 0, and so has a row of its own."""
        return self._runs.setdefault((os.getpid(), number), (uuid.uuid4().hex, time.time()))

    def _say_unstorable(self, refused: Sequence[Evaluation], problem: str) -> None:
        if refused and not self.counts.refused:
            _log.warning(
                "%s: an evaluation cannot be stored (%s); further ones are only counted", self.name, problem
            )

    def _settle(self, evaluations: Sequence[Evaluation], refused: Sequence[Evaluation]) -> None:
        self._ledger.settle_evaluations(refused, "refused", "unstorable")
        self._ledger.settle_evaluations(evaluations, "written")

    def _see_to_the_rest(self) -> None:
        """Now and then store counts, and delete a part of what exceeds the limits; all is written by now."""
        if self._monitors and time.monotonic() >= self._next_counts:
            self._store_counts()
        # Once a minute, or with each write where there is more.
        if self._keep is not None and time.monotonic() >= self._next_look:
            deleted = self._delete_in_passing(self._keep, self._clock.now())
            self._next_look = time.monotonic() + (0 if deleted else _LOOK)

    def _store_counts(self) -> Exception | None:
        """Store the Monitors' counts, or say why they are not; the next time does it."""
        try:
            # First: a Monitor looks into its spool to count, and a fork waits for one file after another.
            if rows := self._counts_of_monitors():
                self._put_counts(rows)
        except Exception as error:  # noqa: BLE001 - results are written; counts must not make them look lost
            _log.debug("%s: a Monitor's counts were not stored: %s", self.name, error_words(error))
            return error
        return None

    @abstractmethod
    def _put_counts(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows of the `ledger` table."""

    @abstractmethod
    def _delete_in_passing(self, keep: Retention, now: float) -> int:
        """Delete some of the oldest turns; how many. Never raises: what was to be written is written."""
