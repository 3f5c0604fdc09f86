"""The golden room: sets of cases that an application must pass, from production, documents or people."""

from steelyard.golden._case import Case, Message, Source
from steelyard.golden._forms import Form, golden_from, golden_to
from steelyard.golden._set import GOLDEN_SCHEMA, Difference, GoldenSet, case_from_dict, case_to_dict, diff

__all__ = [
    "GOLDEN_SCHEMA",
    "Case",
    "Difference",
    "Form",
    "GoldenSet",
    "Message",
    "Source",
    "case_from_dict",
    "case_to_dict",
    "diff",
    "golden_from",
    "golden_to",
]
