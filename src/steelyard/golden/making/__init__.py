"""Golden cases from documents: written by a model, verified word for word, checked by a critic."""

from steelyard.golden.making._make import GenerationResult, Plan, make, plan
from steelyard.golden.making._passages import Passage, read_passages
from steelyard.golden.making._requests import KINDS, CaseKind, quotas

__all__ = [
    "KINDS",
    "CaseKind",
    "GenerationResult",
    "Passage",
    "Plan",
    "make",
    "plan",
    "quotas",
    "read_passages",
]
