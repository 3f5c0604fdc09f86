"""What has been scored already, by result id."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection
from pathlib import Path

from steelyard.sinks import connect_readonly

_AT_ONCE = 500


class StoredResults:
    """Looks result ids up in a results file, which may be written to meanwhile, or not be there at all."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._connection: sqlite3.Connection | None = None

    def known(self, ids: Collection[str]) -> set[str]:
        """Those that have a value, or to which the metric does not apply; failures are to be tried again.

        Raises:
            ConfigurationError: If the file is not a results file.
        """
        connection = self._connected()
        if connection is None:
            return set()
        wanted, found = list(ids), set[str]()
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            places = ", ".join("?" * len(some))
            query = f"SELECT id FROM scores WHERE id IN ({places}) AND status != 'failed'"
            found.update(row[0] for row in connection.execute(query, some))
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
