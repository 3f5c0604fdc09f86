"""Putting a golden set to an application, recorded and judged."""

from steelyard.golden.running._app import App, app_from
from steelyard.golden.running._assert import assert_scores
from steelyard.golden.running._declined import Declined
from steelyard.golden.running._outputs import HOW_TO_ASK, NOTHING_ASKED, junit_xml, markdown_summary
from steelyard.golden.running._reply import AppReply, OddReply, read_reply
from steelyard.golden.running._run import Repeat, arun_golden, run_golden

__all__ = [
    "HOW_TO_ASK",
    "NOTHING_ASKED",
    "App",
    "AppReply",
    "Declined",
    "OddReply",
    "Repeat",
    "app_from",
    "arun_golden",
    "assert_scores",
    "junit_xml",
    "markdown_summary",
    "read_reply",
    "run_golden",
]
