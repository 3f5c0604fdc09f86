"""What all recorders share, from the protocol of turns to the assembly of contexts."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.recording import provenance as provenance
from steelyard.recording._draft import Draft as Draft
from steelyard.recording._draft import ManualTurn as ManualTurn
from steelyard.recording._draft import OnRecord as OnRecord
from steelyard.recording._draft import TurnDraft as TurnDraft
from steelyard.recording._draft import TurnTarget as TurnTarget
from steelyard.recording._draft import changed as changed
from steelyard.recording._draft import check_function as check_function
from steelyard.recording._draft import check_names as check_names
from steelyard.recording._draft import check_positive as check_positive
from steelyard.recording._draft import checked_target as checked_target
from steelyard.recording._draft import with_given as with_given
from steelyard.recording._recorders import KNOWN_WORDS as KNOWN_WORDS
from steelyard.recording._recorders import SWITCH as SWITCH
from steelyard.recording._recorders import BaseInstrumentor as BaseInstrumentor
from steelyard.recording._recorders import attach_recorders as attach_recorders
from steelyard.recording._recorders import detach_recorders as detach_recorders
from steelyard.recording._recorders import is_switched_on as is_switched_on
from steelyard.recording._trace import SILENT_TRACE as SILENT_TRACE
from steelyard.recording._trace import RunSpan as RunSpan
from steelyard.recording._trace import current_trace as current_trace
from steelyard.recording._trace import is_unrecorded as is_unrecorded
from steelyard.recording._trace import session_of as session_of
from steelyard.recording._trace import unrecorded as unrecorded
from steelyard.recording.reading._passages import unique as unique
