"""One RAG turn as a value, its JSON form, and its limits."""

from steelyard.record._json import (
    check_schema,
    record_from_dict,
    record_from_json,
    record_to_dict,
    record_to_json,
)
from steelyard.record._limits import Limits, clean, to_json_value
from steelyard.record._record import Context, ContextsSource, Record, Stage, Status, Timings, TraceRef
from steelyard.record._text import text_of
from steelyard.record._user import check_user_key, is_hashed, with_hashed_user

__all__ = [
    "Context",
    "ContextsSource",
    "Limits",
    "Record",
    "Stage",
    "Status",
    "Timings",
    "TraceRef",
    "check_schema",
    "check_user_key",
    "clean",
    "is_hashed",
    "record_from_dict",
    "record_from_json",
    "record_to_dict",
    "record_to_json",
    "text_of",
    "to_json_value",
    "with_hashed_user",
]
