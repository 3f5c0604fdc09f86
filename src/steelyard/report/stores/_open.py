"""From an address to what reads and writes there: a database more is one more entry in the table."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from steelyard._internal.lazy import lazy_exports
from steelyard.errors import ConfigurationError
from steelyard.report.labels import LabelStore
from steelyard.report.stores._sqlite import SQLiteResults
from steelyard.report.stores._sqlite_labels import SQLiteLabels
from steelyard.report.stores._tables import ResultsReader

_lazily, _ = lazy_exports(
    __name__,
    {
        "PostgresResults": "steelyard.report.stores._postgres",
        "PostgresLabels": "steelyard.report.stores._postgres_labels",
    },
    extras={"psycopg": ("psycopg", "postgres"), "psycopg_pool": ("psycopg", "postgres")},
)


class _StoreKind(NamedTuple):
    results: Callable[[str], ResultsReader]
    labels: Callable[[str], LabelStore]


_POSTGRES = _StoreKind(
    lambda address: _lazily("PostgresResults")(address),
    lambda address: _lazily("PostgresLabels")(address),
)
_STORES: Mapping[str, _StoreKind] = {
    "": _StoreKind(SQLiteResults, SQLiteLabels),
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
}
"""By the scheme of the address, in lower case; a path has none."""


def open_results(address: str | os.PathLike[str] = "steelyard.db") -> ResultsReader:
    """Open stored results for reading; the caller closes them.

    Args:
        address: The path of a file that `SQLiteSink` wrote, or the address of another database.

    Raises:
        ConfigurationError: If nothing can be read there. A password in the address is not repeated.
    """
    return _store_of(address).results(os.fspath(address))


def open_labels(address: str | os.PathLike[str] = "steelyard.db") -> LabelStore:
    """The labels beside stored results; nothing is read or written yet.

    Args:
        address: As for `open_results`.

    Raises:
        ConfigurationError: If labels cannot be kept at such an address.
    """
    return _store_of(address).labels(os.fspath(address))


def _store_of(address: str | os.PathLike[str]) -> _StoreKind:
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", os.fspath(address))
    scheme = found[1].lower() if found else ""
    if scheme not in _STORES:
        others = "".join(f" or {name}://..." for name in _STORES if name)
        raise ConfigurationError(f"there are no results at {scheme}:// addresses; give a path{others}")
    return _STORES[scheme]
