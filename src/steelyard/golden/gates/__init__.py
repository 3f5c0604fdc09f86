"""Gates with stated error rates, and the comparison of two runs."""

from steelyard.golden.gates._compare import MetricComparison
from steelyard.golden.gates._gate import EarlierScores, gates_from

__all__ = [
    "EarlierScores",
    "MetricComparison",
    "gates_from",
]
