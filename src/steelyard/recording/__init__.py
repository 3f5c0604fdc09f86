"""The recording room: what all recorders share, from the protocol of turns to the assembly of contexts."""

from steelyard.recording import provenance
from steelyard.recording._answering import ModelCall, answering_prompts
from steelyard.recording._assemble import Assembled, assemble, mark_in_prompt, unique
from steelyard.recording._checks import check_function, check_names, check_positive
from steelyard.recording._draft import Draft, OnRecord, TurnDraft, changed
from steelyard.recording._guard import SILENT_TRACE, is_unrecorded, unrecorded
from steelyard.recording._instrumentor import SWITCH, BaseInstrumentor, is_switched_on
from steelyard.recording._manual import ManualTurn, with_given
from steelyard.recording._target import TurnTarget, checked_target
from steelyard.recording._trace import current_trace

__all__ = [
    "Assembled",
    "BaseInstrumentor",
    "Draft",
    "ManualTurn",
    "ModelCall",
    "OnRecord",
    "SILENT_TRACE",
    "SWITCH",
    "TurnDraft",
    "TurnTarget",
    "answering_prompts",
    "assemble",
    "changed",
    "check_function",
    "check_names",
    "check_positive",
    "checked_target",
    "current_trace",
    "is_switched_on",
    "is_unrecorded",
    "mark_in_prompt",
    "provenance",
    "unique",
    "unrecorded",
    "with_given",
]
