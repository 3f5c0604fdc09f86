"""Gates with stated error rates, and the comparison of two runs."""

from steelyard.golden.gates._compare import Comparison, MetricComparison, adjusted, compare_runs
from steelyard.golden.gates._earlier import Earlier
from steelyard.golden.gates._gate import Gate, GateCheck, Repeated, gates_from

__all__ = [
    "Comparison",
    "Earlier",
    "Gate",
    "GateCheck",
    "MetricComparison",
    "Repeated",
    "adjusted",
    "compare_runs",
    "gates_from",
]
