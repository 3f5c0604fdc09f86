"""Golden cases from documents: written by a model, verified word for word, checked by a critic."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.golden.making._make import GenerationResult as GenerationResult
from steelyard.golden.making._make import Plan, make, plan
from steelyard.golden.making._passages import Passage as Passage
from steelyard.golden.making._passages import read_passages
from steelyard.golden.making._requests import KINDS as KINDS
from steelyard.golden.making._requests import CaseKind as CaseKind
from steelyard.golden.making._requests import quotas as quotas

__all__ = ["Plan", "make", "plan", "read_passages"]
