"""Which passages stand in a prompt, whatever the prompt did to them.

Passages and prompts are compared as words (see `provenance/_words.py`). Most passages stand there whole and
apart from each other, which a search for their words shows; the rest are compared by shingles of four words.
"""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.recording.provenance.matching._evidence import MOST_PASSAGES as MOST_PASSAGES
from steelyard.recording.provenance.matching._evidence import MOST_PROMPT as MOST_PROMPT
from steelyard.recording.provenance.matching._evidence import UNDECIDED as UNDECIDED
from steelyard.recording.provenance.matching._evidence import PassageMatch as PassageMatch
from steelyard.recording.provenance.matching._find import find_passages as find_passages
from steelyard.recording.provenance.matching._find import is_printed as is_printed
