"""Rows of scores added up in one pass, over time and by group at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard.report.queries import BARS, Aggregates, Sums

_Indices = npt.NDArray[np.intp]
_Key = tuple[str, int, str | None]


@dataclass(slots=True)
class Adder:
    """Adds up chunks of rows (metric, time, value, passed, inclusion, threshold, lower, owner).

    numpy sorts a chunk into its pieces, each of which is added up as a whole: a loop over single rows takes
    several times as long, and so does SQLite, which would sort all rows to group them.
    """

    start: float
    """Unix time at which piece 0 starts."""
    width: float
    """Seconds a piece lasts."""
    groups: Mapping[str, tuple[str, ...]] | None = None
    """The groups of each owner; None where an owner is itself the group."""
    _times: dict[_Key, Sums] = field(default_factory=dict)
    _groups: dict[_Key, Sums] = field(default_factory=dict)

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Take a chunk into account."""
        metrics, times, values, passed, inclusion, thresholds, lower, owners = zip(*rows, strict=True)
        chunk = _Chunk(
            metrics=metrics,
            values=np.array(values, float),
            inclusion=np.array(inclusion, float),
            passed=np.array(passed, float),
            thresholds=thresholds,
            lower=lower,
        )
        # Metric and piece of time in one number, by which a chunk is sorted once.
        metric = _coded(metrics) << 32
        buckets = ((np.array(times, float) - self.start) / self.width).astype(np.int64)
        for where in _pieces(metric + buckets):
            _into(self._times, (metrics[where[0]], int(buckets[where[0]]), None), chunk, where)
        memberships = self._memberships(owners)
        if not any(memberships):
            return
        for where in _pieces(metric + _coded(memberships)):
            for group in memberships[where[0]]:
                _into(self._groups, (metrics[where[0]], 0, group), chunk, where)

    def found(self) -> Aggregates:
        """All that was added up, in order of metric, time and group."""
        return Aggregates(over_time=_ordered(self._times), by_group=_ordered(self._groups))

    def _memberships(self, owners: Sequence[str | None]) -> Sequence[tuple[str, ...]]:
        """The groups that each row is in."""
        if self.groups is None:
            return [(owner,) if owner else () for owner in owners]
        return [self.groups.get(owner or "", ()) for owner in owners]


def added_up(rows: Sequence[Sequence[Any]], *, start: float, width: float) -> Aggregates:
    """Rows added up over time, without groups."""
    adder = Adder(start=start, width=width, groups={})
    if rows:
        adder.add(rows)
    return adder.found()


@dataclass(frozen=True, slots=True)
class _Chunk:
    metrics: Sequence[str]
    values: npt.NDArray[np.float64]
    inclusion: npt.NDArray[np.float64]
    passed: npt.NDArray[np.float64]
    thresholds: Sequence[float | None]
    lower: Sequence[int]


def _into(found: dict[_Key, Sums], key: _Key, chunk: _Chunk, where: _Indices) -> None:
    last = int(where[-1])
    sums = found.get(key)
    if sums is None:
        sums = found[key] = Sums(metric=key[0], bucket=key[1], group=key[2])
    sums.threshold = chunk.thresholds[last]
    sums.direction = "lower" if chunk.lower[last] else "higher"
    values, inclusion, passed = chunk.values[where], chunk.inclusion[where], chunk.passed[where]
    sums.values.add_all(values, inclusion)
    # Scores without a threshold neither pass nor fail.
    told = ~np.isnan(passed)
    sums.passes.add_all(passed[told], inclusion[told])
    # 1 itself is in the last bar, and so is what is outside of 0..1 in the nearest.
    bars = np.clip((values * BARS).astype(np.intp), 0, BARS - 1)
    sums.bars += np.bincount(bars, 1 / inclusion, BARS)


def _coded(names: Sequence[Hashable]) -> npt.NDArray[np.int64]:
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return np.fromiter((codes[name] for name in names), np.int64, len(names))


def _pieces(keys: npt.NDArray[np.int64]) -> list[_Indices]:
    """The places of each key, in order."""
    order = np.argsort(keys, kind="stable")
    edges = np.flatnonzero(np.diff(keys[order])) + 1
    return np.split(order, edges)


def _ordered(found: Mapping[_Key, Sums]) -> list[Sums]:
    return [found[key] for key in sorted(found, key=lambda key: (key[0], key[1], key[2] or ""))]


def groups_of(rows: Iterable[tuple[str, object]]) -> dict[str, tuple[str, ...]]:
    """The groups of each record; those that are the same are one object."""
    found: dict[str, tuple[str, ...]] = {}
    same: dict[tuple[str, ...], tuple[str, ...]] = {}
    for record, group in rows:
        if isinstance(group, str) and group:
            groups = (*found.get(record, ()), group)
            # Millions of turns share a few combinations of tags.
            found[record] = same.setdefault(groups, groups)
    return found
