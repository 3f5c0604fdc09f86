"""From the steps of a turn to what its Record says: the one builder of all recorders."""

from steelyard.recording.building._answers import before_verdict, revised, said_last
from steelyard.recording.building._asked import (
    Asked,
    asked_of,
    is_conversation,
    since_last_asked,
    without_template,
)
from steelyard.recording.building._decide import decide, guess, shows_nothing, told
from steelyard.recording.building._parts import is_telling, shown_instead
from steelyard.recording.building._reaching import reaches
from steelyard.recording.building._sources import Sources, only_searches, sources_of
from steelyard.recording.building._steps import Step, StepKind, Turn

__all__ = [
    "Asked",
    "Sources",
    "Step",
    "StepKind",
    "Turn",
    "asked_of",
    "before_verdict",
    "decide",
    "guess",
    "is_conversation",
    "is_telling",
    "only_searches",
    "reaches",
    "revised",
    "said_last",
    "shown_instead",
    "shows_nothing",
    "since_last_asked",
    "sources_of",
    "told",
    "without_template",
]
