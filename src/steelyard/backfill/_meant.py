"""Which stored turns are meant, and which of them have been scored already."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from steelyard.errors import ConfigurationError
from steelyard.record import Record
from steelyard.sinks import connect_readonly

_FIELDS = ("id", "status", "trace_id", "tag")
_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class StoredTurnFilter:
    """A period, and conditions on what stands with a turn."""

    since: float | None = None
    """Unix time; only turns that started then or later."""
    until: float | None = None
    """Unix time; only turns that started before."""
    where: Sequence[tuple[str, str]] = ()
    """Pairs of a field (`tag`, `status`, `id`, `trace_id`, or a name in the metadata) and a value."""

    @staticmethod
    def parse(conditions: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Conditions as they are typed: `tag=prod`."""
        pairs = [condition.partition("=") for condition in conditions]
        for name, equals, _ in pairs:
            if not (name.strip() and equals):
                raise ConfigurationError(f"--where wants FIELD=VALUE, not {name!r}")
        return tuple((name.strip(), value.strip()) for name, _, value in pairs)

    def leaves_out(self, record: Record) -> str | None:
        """Why a turn is not meant; None for one that is."""
        if self.since is not None or self.until is not None:
            started = record.timings.started_at if record.timings else None
            if started is None:
                return "no_time"
            if (self.since is not None and started < self.since) or (
                self.until is not None and started >= self.until
            ):
                return "other_time"
        return None if all(_holds(record, name, value) for name, value in self.where) else "other_value"


def _holds(record: Record, name: str, value: str) -> bool:
    if name == "tag":
        return value in record.tags
    if name in _FIELDS:
        return str(getattr(record, name)) == value
    return str(record.metadata.get(name)) == value


class Judgement(NamedTuple):
    """A metric on a turn, and how it was judged: two that are equal need not be made twice."""

    record_id: str
    metric: str
    options: str
    judge: str | None
    embedder: str | None
    prompt_version: str | None
    metric_version: str | None
    fuse: str | None


class StoredResults:
    """Looks judgements up in a results file, which may be written to meanwhile, or not be there at all."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._connection: sqlite3.Connection | None = None

    def known(self, records: Collection[str]) -> set[Judgement]:
        """What is known of some turns: has a value, or the metric does not apply; failures are tried again.

        Which other metrics were judged beside one is not looked at, though it is a part of a result's id.
        """
        connection = self._connected()
        if connection is None:
            return set()
        wanted, found = list(records), set[Judgement]()
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            places = ", ".join("?" * len(some))
            query = (
                "SELECT record_id, metric, options, judge, embedder, prompt_version, metric_version, fuse "
                f"FROM scores WHERE record_id IN ({places}) AND status != 'failed'"
            )
            found.update(Judgement(*row) for row in connection.execute(query, some))
        return found

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> sqlite3.Connection | None:
        if self._connection is None and self._path is not None and self._path.exists():
            self._connection = connect_readonly(self._path)
        return self._connection
