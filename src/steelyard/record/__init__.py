"""The record room: one RAG turn as a value, its JSON form, its limits, and the identity of its trace."""

from steelyard.record._assemble import Assembled, assemble, mark_in_prompt, unique
from steelyard.record._clean import DEFAULT_LIMITS, Limits, clean, plain, text_of
from steelyard.record._draft import Draft
from steelyard.record._guard import SILENT_TRACE, is_unrecorded, unrecorded
from steelyard.record._json import (
    RECORD_SCHEMA,
    check_schema,
    context_from_dict,
    filled,
    record_from_dict,
    record_from_json,
    record_to_dict,
    record_to_json,
)
from steelyard.record._record import Context, ContextsSource, Record, Stage, Status, Timings, TraceRef
from steelyard.record._trace import current_trace

__all__ = [
    "DEFAULT_LIMITS",
    "RECORD_SCHEMA",
    "SILENT_TRACE",
    "Assembled",
    "Context",
    "ContextsSource",
    "Draft",
    "Limits",
    "Record",
    "Stage",
    "Status",
    "Timings",
    "TraceRef",
    "assemble",
    "check_schema",
    "clean",
    "context_from_dict",
    "current_trace",
    "filled",
    "is_unrecorded",
    "mark_in_prompt",
    "plain",
    "record_from_dict",
    "record_from_json",
    "record_to_dict",
    "record_to_json",
    "text_of",
    "unique",
    "unrecorded",
]
