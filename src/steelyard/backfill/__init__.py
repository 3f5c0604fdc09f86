"""Stored turns in, from files, exports and servers; scores out, onto where they came from.

Nothing is paid for twice: what the results file has, from live traffic or an earlier run, is left out.
"""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.backfill._exports import TracesFound
from steelyard.backfill._rows import Columns, read_record, read_records, record_of
from steelyard.backfill._rows import Unread as Unread
from steelyard.backfill._run import Backfill, BackfillCounts
from steelyard.backfill._run import Task as Task
from steelyard.backfill._source import Source as Source
from steelyard.backfill._source import StoredTurnFilter as StoredTurnFilter
from steelyard.backfill._source import open_sources

__all__ = [
    "Backfill",
    "BackfillCounts",
    "Columns",
    "TracesFound",
    "open_sources",
    "read_record",
    "read_records",
    "record_of",
]
