"""Why a turn is bad: by rules over what was recorded and judged anyway, and, if asked, by experiments."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.diagnosis._rules import MENDS, diagnose
from steelyard.diagnosis._trials import Experiments
from steelyard.diagnosis._trials import Laboratory as Laboratory
from steelyard.diagnosis._trials import experiment as experiment
from steelyard.diagnosis._trials import laboratory_of as laboratory_of

__all__ = ["Experiments", "MENDS", "diagnose"]
