"""Stored turns in, from files, exports and servers; scores out, onto where they came from.

Nothing is paid for twice: what the results file has, from live traffic or an earlier run, is left out.
"""

from steelyard.backfill._columns import Columns, record_of
from steelyard.backfill._filter import TurnFilter
from steelyard.backfill._rows import read_record, read_records
from steelyard.backfill._run import Backfill, BackfillCounts, InProcess, Scorer, Task
from steelyard.backfill._source import Source, TraceReader, TracesFound, open_sources

__all__ = [
    "Backfill",
    "BackfillCounts",
    "Columns",
    "InProcess",
    "Scorer",
    "Source",
    "Task",
    "TraceReader",
    "TracesFound",
    "TurnFilter",
    "open_sources",
    "read_record",
    "read_records",
    "record_of",
]
