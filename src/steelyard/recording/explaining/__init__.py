"""What was taken for question, passages and answer of a turn: from where, how it is known, what settles it.

Recorders note on each Record which step told what (`origins_of`); the command line and the view show it
(`explain`), with the one option for each doubt (`OPTIONS`).
"""

from steelyard.recording.explaining._explained import Doubt, Explained, Part, explain
from steelyard.recording.explaining._options import OPTIONS, option_for
from steelyard.recording.explaining._origins import origins_of

__all__ = ["OPTIONS", "Doubt", "Explained", "Part", "explain", "option_for", "origins_of"]
