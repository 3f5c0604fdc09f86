"""The sinks room: where Evaluations go, one file each.

Sinks that need an optional package import it when they are made, so importing this room needs none.
"""

from steelyard.sinks._read import connect_readonly, read_evaluations, read_jsonl
from steelyard.sinks._sink import Sink
from steelyard.sinks.jsonl import JSONLSink
from steelyard.sinks.sqlite import SQLiteSink

__all__ = [
    "JSONLSink",
    "SQLiteSink",
    "Sink",
    "connect_readonly",
    "read_evaluations",
    "read_jsonl",
]
