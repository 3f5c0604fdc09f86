"""One RAG turn as a value, its JSON form, and its limits."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.record._limits import Limits as Limits
from steelyard.record._limits import check_schema as check_schema
from steelyard.record._limits import clean as clean
from steelyard.record._limits import number as number
from steelyard.record._limits import probability as probability
from steelyard.record._limits import record_from_dict, record_from_json, record_to_dict, record_to_json
from steelyard.record._limits import to_json_value as to_json_value
from steelyard.record._limits import whole as whole
from steelyard.record._record import Context, ContextsSource, Record, Stage, Status, Timings, TraceRef
from steelyard.record._record import check_user_key as check_user_key
from steelyard.record._record import is_hashed as is_hashed
from steelyard.record._record import text_of as text_of
from steelyard.record._record import with_hashed_user as with_hashed_user

__all__ = [
    "Context",
    "ContextsSource",
    "Record",
    "Stage",
    "Status",
    "Timings",
    "TraceRef",
    "record_from_dict",
    "record_from_json",
    "record_to_dict",
    "record_to_json",
]
