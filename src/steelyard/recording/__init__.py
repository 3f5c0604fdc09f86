"""What all recorders share, from the protocol of turns to the assembly of contexts."""

from steelyard.recording import provenance
from steelyard.recording._checks import check_function, check_names, check_positive
from steelyard.recording._draft import Draft, OnRecord, TurnDraft, changed
from steelyard.recording._guard import SILENT_TRACE, is_unrecorded, unrecorded
from steelyard.recording._instrumentor import (
    KNOWN_WORDS,
    SPAN_WORDS,
    SWITCH,
    BaseInstrumentor,
    is_switched_on,
)
from steelyard.recording._manual import ManualTurn, with_given
from steelyard.recording._recorders import RECORDERS, attach_recorders, detach_recorders
from steelyard.recording._run_span import RunSpan
from steelyard.recording._session import session_of
from steelyard.recording._target import TurnTarget, checked_target
from steelyard.recording._trace import current_trace
from steelyard.recording._unique import unique

__all__ = [
    "BaseInstrumentor",
    "Draft",
    "KNOWN_WORDS",
    "ManualTurn",
    "OnRecord",
    "RECORDERS",
    "RunSpan",
    "SILENT_TRACE",
    "SPAN_WORDS",
    "SWITCH",
    "TurnDraft",
    "TurnTarget",
    "attach_recorders",
    "changed",
    "check_function",
    "check_names",
    "check_positive",
    "checked_target",
    "current_trace",
    "detach_recorders",
    "is_switched_on",
    "is_unrecorded",
    "provenance",
    "session_of",
    "unique",
    "unrecorded",
    "with_given",
]
