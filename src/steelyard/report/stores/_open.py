"""From an address to what reads and writes there: a database more is one more entry in each table."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from steelyard.errors import ConfigurationError
from steelyard.report.labels import LabelStore
from steelyard.report.queries import ResultsReader
from steelyard.report.stores._sqlite import SQLiteResults
from steelyard.report.stores._sqlite_labels import SQLiteLabels

_T = TypeVar("_T")

_RESULTS: Mapping[str, Callable[[str], ResultsReader]] = {"": SQLiteResults}
_LABELS: Mapping[str, Callable[[str], LabelStore]] = {"": SQLiteLabels}
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


def _of_scheme(known: Mapping[str, Callable[[str], _T]], address: str | os.PathLike[str]) -> _T:
    text = os.fspath(address)
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text)
    scheme = found[1].lower() if found else ""
    if scheme not in known:
        others = "".join(f" or {name}://..." for name in known if name)
        raise ConfigurationError(f"there are no results at {scheme}:// addresses; give a path{others}")
    return known[scheme](text)
