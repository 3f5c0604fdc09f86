"""Results in a database: the tables, the sinks that write them, and what reads them again.

Everything is for the other rooms of the project; users find it in `steelyard.sinks` and `steelyard.report`.
SQLite and Postgres have the same tables (`_schema`). What they do differently is behind `Store`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports
from steelyard.results._schema import stored_evaluation as stored_evaluation
from steelyard.results._sqlite_file import check_folder as check_folder
from steelyard.results._sqlite_file import connect_readonly as connect_readonly
from steelyard.results._sqlite_sink import SQLiteSink as SQLiteSink
from steelyard.results._sqlite_store import read_evaluations as read_evaluations
from steelyard.results._table_sink import KnowsEarlierScores as KnowsEarlierScores
from steelyard.results._table_sink import ObservedMonitor as ObservedMonitor
from steelyard.results._table_sink import Retention as Retention
from steelyard.results._table_sink import prune as prune

if TYPE_CHECKING:
    from steelyard.results._postgres import PostgresStore as PostgresStore
    from steelyard.results._postgres_sink import PostgresSink as PostgresSink
    from steelyard.results._reader import ResultsReader as ResultsReader
    from steelyard.results._reader import open_labels as open_labels
    from steelyard.results._reader import open_results as open_results


__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "PostgresSink": "steelyard.results._postgres_sink",
        "PostgresStore": "steelyard.results._postgres",
        "ResultsReader": "steelyard.results._reader",
        "open_labels": "steelyard.results._reader",
        "open_results": "steelyard.results._reader",
    },
    extras={"psycopg": ("psycopg", "postgres"), "psycopg_pool": ("psycopg", "postgres")},
)
