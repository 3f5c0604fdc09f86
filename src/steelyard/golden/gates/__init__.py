"""Gates with stated error rates, and the comparison of two runs."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.golden.gates._compare import MetricComparison as MetricComparison
from steelyard.golden.gates._gate import EarlierScores as EarlierScores
from steelyard.golden.gates._gate import gates_from as gates_from
