"""Golden cases from production: drawn with known probabilities, reviewed by people."""

from steelyard.golden.mining._estimate import production_mean
from steelyard.golden.mining._mine import Mask, Mined, mine
from steelyard.golden.mining._population import Population
from steelyard.golden.mining._review import Review, apply_labels

__all__ = [
    "Mask",
    "Mined",
    "Population",
    "Review",
    "apply_labels",
    "mine",
    "production_mean",
]
