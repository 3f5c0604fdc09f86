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
from steelyard.golden._forms import golden_from, golden_to
from steelyard.golden._set import (
    Case,
    GoldenSet,
    Message,
    case_from_dict,
    case_to_dict,
    diff,
)

if TYPE_CHECKING:
    from steelyard.golden._results import CaseResult, GateResult, MetricResult, Run
    from steelyard.golden.gates._compare import Comparison, compare_runs
    from steelyard.golden.gates._gate import Gate
    from steelyard.golden.running._outputs import junit_xml, markdown_summary
    from steelyard.golden.running._run import arun_golden, run_golden
    from steelyard.golden.running._scores import assert_scores

__all__ = [
    "Case",
    "CaseResult",
    "Comparison",
    "Gate",
    "GateResult",
    "GoldenSet",
    "Message",
    "MetricResult",
    "Run",
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
        "Comparison": "steelyard.golden.gates._compare",
        "Gate": "steelyard.golden.gates._gate",
        "GateResult": "steelyard.golden._results",
        "MetricResult": "steelyard.golden._results",
        "Run": "steelyard.golden._results",
        "arun_golden": "steelyard.golden.running._run",
        "assert_scores": "steelyard.golden.running._scores",
        "compare_runs": "steelyard.golden.gates._compare",
        "junit_xml": "steelyard.golden.running._outputs",
        "markdown_summary": "steelyard.golden.running._outputs",
        "run_golden": "steelyard.golden.running._run",
    },
)
