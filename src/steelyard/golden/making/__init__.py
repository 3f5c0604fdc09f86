"""Golden cases from documents: written by a model, verified word for word, checked by a critic."""

from steelyard.golden.making._kinds import KINDS, CaseKind, quotas
from steelyard.golden.making._make import Made, Plan, make, plan
from steelyard.golden.making._passages import Passage, read_passages
from steelyard.golden.making._writer import Writer

__all__ = [
    "KINDS",
    "CaseKind",
    "Made",
    "Passage",
    "Plan",
    "Writer",
    "make",
    "plan",
    "quotas",
    "read_passages",
]
