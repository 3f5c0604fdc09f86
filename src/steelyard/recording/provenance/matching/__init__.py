"""Which passages stand in a prompt, whatever the prompt did to them.

Passages and prompts are compared as words (see `provenance/_words.py`). Most passages stand there whole and
apart from each other, which a search for their words shows; the rest are compared by shingles of four words.
"""

from steelyard.recording.provenance.matching._find import find_passages, is_printed
from steelyard.recording.provenance.matching._sighting import (
    MOST_PASSAGES,
    MOST_PROMPT,
    UNDECIDED,
    PassageMatch,
)

__all__ = ["MOST_PASSAGES", "MOST_PROMPT", "UNDECIDED", "PassageMatch", "find_passages", "is_printed"]
