"""Golden cases from production: drawn with known probabilities, reviewed by people."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.golden.mining._mine import Mask as Mask
from steelyard.golden.mining._mine import Mined, Review, apply_labels, mine, production_mean
from steelyard.golden.mining._population import Population as Population

__all__ = ["Mined", "Review", "apply_labels", "mine", "production_mean"]
