"""Sets of cases that an application must pass, from production, documents or people.

>>> from steelyard.golden import Case, GoldenSet, run_golden
>>> cases = GoldenSet(cases=(Case(question="How many kite make a deben?", reference="Ten."),))
>>> run = run_golden(cases, lambda question: "Ten kite.", metrics=["answer_similarity"])
>>> run.broken, round(run.cases[0].metrics["answer_similarity"].value, 1) > 0.2
((), True)
"""

from steelyard.golden._results import CaseResult, GateResult, MetricResult, Run
from steelyard.golden._set import (
    Case,
    GoldenSet,
    Message,
    diff,
    golden_from,
    golden_to,
)
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
    "compare_runs",
    "diff",
    "golden_from",
    "golden_to",
    "junit_xml",
    "markdown_summary",
    "run_golden",
]
