"""The recording room: what all recorders share, from drafts to the assembly of contexts."""

from steelyard.recording import provenance
from steelyard.recording._assemble import Assembled, assemble, mark_in_prompt, unique
from steelyard.recording._draft import Draft
from steelyard.recording._guard import SILENT_TRACE, is_unrecorded, unrecorded
from steelyard.recording._trace import current_trace

__all__ = [
    "Assembled",
    "Draft",
    "SILENT_TRACE",
    "assemble",
    "current_trace",
    "is_unrecorded",
    "mark_in_prompt",
    "provenance",
    "unique",
    "unrecorded",
]
