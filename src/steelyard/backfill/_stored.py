"""What has been scored already, by result id."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from steelyard.sinks import connect_readonly

_AT_ONCE = 500


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

        Raises:
            ConfigurationError: If the file is not a results file.
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
