"""Sets of cases that an application must pass, from production, documents or people.

>>> from steelyard.golden import Case, GoldenSet, run_golden
>>> cases = GoldenSet(cases=(Case(question="How many kite make a deben?", reference="Ten."),))
>>> run = run_golden(cases, lambda question: "Ten kite.", metrics=["answer_similarity"])
>>> run.broken, round(run.cases[0].metrics["answer_similarity"].value, 1) > 0.2
((), True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports
from steelyard.golden._case import Case, Message, Source
from steelyard.golden._forms import Form, golden_from, golden_to
from steelyard.golden._set import GOLDEN_SCHEMA, Difference, GoldenSet, case_from_dict, case_to_dict, diff

if TYPE_CHECKING:
    from steelyard.golden._results import CaseResult, GateResult, MetricResult, Run
    from steelyard.golden.gates import Comparison, Gate, compare_runs
    from steelyard.golden.running import (
        Declined,
        arun_golden,
        assert_scores,
        junit_xml,
        markdown_summary,
        run_golden,
    )

__all__ = [
    "GOLDEN_SCHEMA",
    "Case",
    "CaseResult",
    "Comparison",
    "Declined",
    "Difference",
    "Form",
    "Gate",
    "GateResult",
    "GoldenSet",
    "Message",
    "MetricResult",
    "Run",
    "Source",
    "arun_golden",
    "assert_scores",
    "case_from_dict",
    "case_to_dict",
    "compare_runs",
    "diff",
    "golden_from",
    "golden_to",
    "junit_xml",
    "markdown_summary",
    "run_golden",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "CaseResult": "steelyard.golden._results",
        "Comparison": "steelyard.golden.gates",
        "Declined": "steelyard.golden.running",
        "Gate": "steelyard.golden.gates",
        "GateResult": "steelyard.golden._results",
        "MetricResult": "steelyard.golden._results",
        "Run": "steelyard.golden._results",
        "arun_golden": "steelyard.golden.running",
        "assert_scores": "steelyard.golden.running",
        "compare_runs": "steelyard.golden.gates",
        "junit_xml": "steelyard.golden.running",
        "markdown_summary": "steelyard.golden.running",
        "run_golden": "steelyard.golden.running",
    },
)
