"""Why a turn is bad: by rules over what was recorded and judged anyway, and, if asked, by experiments."""

from steelyard.diagnosis._experiments import Experiments, Laboratory, laboratory_of
from steelyard.diagnosis._rules import MENDS, diagnose
from steelyard.diagnosis._trials import experiment

__all__ = ["MENDS", "Experiments", "Laboratory", "diagnose", "experiment", "laboratory_of"]
