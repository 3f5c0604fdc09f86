"""Gates with stated error rates, and the comparison of two runs."""

from steelyard.golden.gates._compare import Comparison, MetricComparison, adjusted, compare_runs
from steelyard.golden.gates._gate import Gate, GateCheck, gates_from

__all__ = ["Comparison", "Gate", "GateCheck", "MetricComparison", "adjusted", "compare_runs", "gates_from"]
