"""What was taken for question, passages and answer of a turn: from where, how it is known, what settles it.

Recorders note on each Record which step told what (`origins_of`); the command line and the view show it
(`explain`), with the one option for each doubt (`OPTIONS`).
"""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.recording.explaining._explained import Part as Part
from steelyard.recording.explaining._explained import explain as explain
from steelyard.recording.explaining._explained import option_for as option_for
from steelyard.recording.explaining._origins import origins_of as origins_of
