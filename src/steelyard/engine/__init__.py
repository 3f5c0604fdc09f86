"""Score one Record, score many."""

from steelyard.engine._evaluate import check_names, evaluate_one
from steelyard.engine._evaluate_many import Progress, aevaluate, evaluate, evaluate_each
from steelyard.engine._results import Results

__all__ = [
    "Progress",
    "Results",
    "aevaluate",
    "check_names",
    "evaluate",
    "evaluate_each",
    "evaluate_one",
]
