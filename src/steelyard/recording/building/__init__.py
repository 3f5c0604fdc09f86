"""From the steps of a turn to what its Record says: the one builder of all recorders."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.recording.building._answers import asks_of_reply as asks_of_reply
from steelyard.recording.building._answers import before_verdict as before_verdict
from steelyard.recording.building._answers import edited as edited
from steelyard.recording.building._answers import is_form as is_form
from steelyard.recording.building._answers import is_gone_into as is_gone_into
from steelyard.recording.building._answers import is_one_of_several as is_one_of_several
from steelyard.recording.building._answers import is_status as is_status
from steelyard.recording.building._answers import named_in_form as named_in_form
from steelyard.recording.building._answers import revised as revised
from steelyard.recording.building._answers import said_last as said_last
from steelyard.recording.building._asked import Asked as Asked
from steelyard.recording.building._asked import asked_of as asked_of
from steelyard.recording.building._asked import without_template as without_template
from steelyard.recording.building._decide import decide as decide
from steelyard.recording.building._decide import guess as guess
from steelyard.recording.building._decide import only_searches as only_searches
from steelyard.recording.building._decide import shows_nothing as shows_nothing
from steelyard.recording.building._decide import told as told
from steelyard.recording.building._sent import is_conversation as is_conversation
from steelyard.recording.building._sent import is_prompt as is_prompt
from steelyard.recording.building._sent import shared_end as shared_end
from steelyard.recording.building._sources import Sources as Sources
from steelyard.recording.building._sources import reaches as reaches
from steelyard.recording.building._sources import sources_of as sources_of
from steelyard.recording.building._steps import Step as Step
from steelyard.recording.building._steps import StepKind as StepKind
from steelyard.recording.building._steps import Steps as Steps
from steelyard.recording.building._steps import is_telling as is_telling
from steelyard.recording.building._steps import said_by_command as said_by_command
from steelyard.recording.building._steps import shown_instead as shown_instead
