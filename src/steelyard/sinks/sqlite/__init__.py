"""Results in a SQLite file: the sink that writes them, what deletes old ones, and what reads them again."""

from steelyard.sinks.sqlite._read import connect_readonly, evaluation_of, read_evaluations
from steelyard.sinks.sqlite._retention import prune_file
from steelyard.sinks.sqlite._sink import SQLiteSink

__all__ = [
    "SQLiteSink",
    "connect_readonly",
    "evaluation_of",
    "prune_file",
    "read_evaluations",
]
