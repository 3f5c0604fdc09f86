"""From an address to what reads and writes there: a database more is one more entry in each table."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.report.labels import LabelStore
from steelyard.report.queries import ResultsReader
from steelyard.report.stores._sqlite import SQLiteResults
from steelyard.report.stores._sqlite_hours import refresh_sqlite
from steelyard.report.stores._sqlite_labels import SQLiteLabels

_T = TypeVar("_T")


def _postgres_results(address: str) -> ResultsReader:
    with _needs_psycopg():
        from steelyard.report.stores._postgres import PostgresResults
    return PostgresResults(address)


def _postgres_labels(address: str) -> LabelStore:
    with _needs_psycopg():
        from steelyard.report.stores._postgres_labels import PostgresLabels
    return PostgresLabels(address)


@contextmanager
def _needs_psycopg() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        # Any other module that is missing is a fault of ours, and has to be seen.
        if (error.name or "").partition(".")[0] in {"psycopg", "psycopg_pool"}:
            raise MissingDependency("psycopg", extra="postgres") from error
        raise


_RESULTS: Mapping[str, Callable[[str], ResultsReader]] = {
    "": SQLiteResults,
    "postgresql": _postgres_results,
    "postgres": _postgres_results,
}
_LABELS: Mapping[str, Callable[[str], LabelStore]] = {
    "": SQLiteLabels,
    "postgresql": _postgres_labels,
    "postgres": _postgres_labels,
}
_REFRESH: Mapping[str, Callable[[str], None]] = {
    "": refresh_sqlite,
    # Postgres adds up fast enough to keep nothing beside the results.
    "postgresql": lambda address: None,
    "postgres": lambda address: None,
}
"""By the scheme of the address, in lower case; a path has none."""


def open_results(address: str | os.PathLike[str] = "steelyard.db") -> ResultsReader:
    """Open stored results for reading; the caller closes them.

    Args:
        address: The path of a file that `SQLiteSink` wrote, or the address of another database.

    Raises:
        ConfigurationError: If nothing can be read there. A password in the address is not repeated.
    """
    return _of_scheme(_RESULTS, address)


def open_labels(address: str | os.PathLike[str] = "steelyard.db") -> LabelStore:
    """The labels beside stored results; nothing is read or written yet.

    Args:
        address: As for `open_results`.

    Raises:
        ConfigurationError: If labels cannot be kept at such an address.
    """
    return _of_scheme(_LABELS, address)


def refresh_results(address: str | os.PathLike[str] = "steelyard.db") -> None:
    """Do what makes reading fast: add up again what has become stale since. It may take seconds.

    Others may read and write meanwhile: what is added up together is an hour of results.

    Args:
        address: As for `open_results`.

    Raises:
        ConfigurationError: If there are no results, or they cannot be written to.
    """
    _of_scheme(_REFRESH, address)


def _of_scheme(known: Mapping[str, Callable[[str], _T]], address: str | os.PathLike[str]) -> _T:
    text = os.fspath(address)
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text)
    scheme = found[1].lower() if found else ""
    if scheme not in known:
        others = "".join(f" or {name}://..." for name in known if name)
        raise ConfigurationError(f"there are no results at {scheme}:// addresses; give a path{others}")
    return known[scheme](text)
