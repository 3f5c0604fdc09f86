"""Score one Record, score many."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.engine._evaluate import check_names as check_names
from steelyard.engine._evaluate import evaluate_one as evaluate_one
from steelyard.engine._evaluate_many import Results as Results
from steelyard.engine._evaluate_many import aevaluate as aevaluate
from steelyard.engine._evaluate_many import evaluate as evaluate
from steelyard.engine._evaluate_many import evaluate_each as evaluate_each
