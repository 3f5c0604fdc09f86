"""Sets of cases that an application must pass, from production, documents or people.

>>> from steelyard.golden import Case, GoldenSet, run_golden
>>> cases = GoldenSet(cases=(Case(question="How many kite make a deben?", reference="Ten."),))
>>> run = run_golden(cases, lambda question: "Ten kite.", metrics=["answer_similarity"])
>>> run.broken, round(run.cases[0].metrics["answer_similarity"].value, 1) > 0.2
((), True)
"""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.golden._app import App as App
from steelyard.golden._app import app_from as app_from
from steelyard.golden._app import load_object as load_object
from steelyard.golden._app import read_reply as read_reply
from steelyard.golden._compare import Comparison, compare_runs
from steelyard.golden._compare import MetricComparison as MetricComparison
from steelyard.golden._gate import EarlierScores as EarlierScores
from steelyard.golden._gate import Gate
from steelyard.golden._gate import gates_from as gates_from
from steelyard.golden._results import HOW_TO_ASK as HOW_TO_ASK
from steelyard.golden._results import NOTHING_ASKED as NOTHING_ASKED
from steelyard.golden._results import CaseResult, GateResult, MetricResult, Run, junit_xml, markdown_summary
from steelyard.golden._run import arun_golden, run_golden
from steelyard.golden._scores import assert_scores
from steelyard.golden._set import Case, GoldenSet, Message, diff, golden_from, golden_to

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
