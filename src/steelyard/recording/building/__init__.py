"""From the steps of a turn to what its Record says: the one builder of all recorders."""

from steelyard.recording.building._answers import before_verdict, edited, revised, said_last
from steelyard.recording.building._asked import (
    Asked,
    asked_of,
    asks_of_reply,
    is_conversation,
    since_last_asked,
    without_template,
)
from steelyard.recording.building._decide import decide, guess, shows_nothing, told
from steelyard.recording.building._parts import is_telling, said_by_command, shown_instead
from steelyard.recording.building._sources import Sources, only_searches, reaches, sources_of
from steelyard.recording.building._steps import Step, StepKind, Turn

__all__ = [
    "Asked",
    "Sources",
    "Step",
    "StepKind",
    "Turn",
    "asked_of",
    "asks_of_reply",
    "before_verdict",
    "decide",
    "edited",
    "guess",
    "is_conversation",
    "is_telling",
    "only_searches",
    "reaches",
    "revised",
    "said_by_command",
    "said_last",
    "shown_instead",
    "shows_nothing",
    "since_last_asked",
    "sources_of",
    "told",
    "without_template",
]
