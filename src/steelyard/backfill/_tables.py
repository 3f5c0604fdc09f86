"""Turns in Parquet and CSV, read by DuckDB a thousand rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from steelyard.backfill._columns import Columns, record_of
from steelyard.backfill._rows import Bad
from steelyard.errors import ConfigurationError, InvalidRecord, MissingDependency
from steelyard.record import Record

_AT_ONCE: Final = 1000
# All as text: types guessed by the first rows would take the leading zeros off an id.
_READERS: Final = {".parquet": "read_parquet(?)", ".csv": "read_csv(?, all_varchar = true)"}
_READERS_TSV: Final = "read_csv(?, all_varchar = true, delim = '\t')"
# A file may come from anywhere: nothing is fetched for it, and what it can use up is bounded.
_CONFIG: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "1GB",
    "threads": "1",
}
SUFFIXES: Final = (".parquet", ".csv", ".tsv")


class TableSource:
    """The turns in one Parquet or CSV file.

    Raises:
        ConfigurationError: If the file cannot be read, or lacks a column that is needed.
        MissingDependency: If DuckDB is not installed.
    """

    def __init__(self, path: Path, *, columns: Columns) -> None:
        self.name = str(path)
        self.without: Mapping[str, int] = {}
        self._path = path
        self._found = columns.find(column_names(path), where=f"{self.name!r}")

    def __len__(self) -> int:
        return int(next(rows(self._path, "count(*) AS n"))["n"])

    def records(self, bad: Bad) -> Iterator[Record]:
        """The turns, in the order of the file."""
        for number, row in enumerate(rows(self._path), start=1):
            try:
                record = record_of(row, self._found)
            except InvalidRecord as error:
                bad(f"{self.name} row {number}", str(error))
            else:
                yield record


def column_names(path: Path) -> list[str]:
    """The columns of a file.

    Raises:
        ConfigurationError: If it cannot be read.
    """
    duckdb = load()
    with closing(duckdb.connect(config=_CONFIG)) as connection:
        try:
            described = connection.execute(f"SELECT * FROM {_reader(path)} LIMIT 0", [str(path)]).description
        except duckdb.Error as error:
            raise ConfigurationError(f"{str(path)!r} cannot be read: {_problem(error)}") from None
    return [column[0] for column in described]


def rows(path: Path, what: str = "*") -> Iterator[dict[str, Any]]:
    """The rows of a file.

    Raises:
        ConfigurationError: If it cannot be read, or not to its end.
    """
    duckdb = load()
    with closing(duckdb.connect(config=_CONFIG)) as connection:
        try:
            cursor = connection.execute(f"SELECT {what} FROM {_reader(path)}", [str(path)])
            names = [column[0] for column in cursor.description]
            while found := cursor.fetchmany(_AT_ONCE):
                for row in found:
                    yield dict(zip(names, row, strict=True))
        except duckdb.Error as error:
            raise ConfigurationError(f"{str(path)!r} cannot be read: {_problem(error)}") from None


def _reader(path: Path) -> str:
    return _READERS.get(path.suffix.lower(), _READERS_TSV)


def load() -> Any:
    """DuckDB.

    Raises:
        MissingDependency: If it is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise MissingDependency("duckdb", extra="backfill") from None
    return duckdb


def _problem(error: Exception) -> str:
    """Its first sentence: what follows may quote rows."""
    return f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
