"""Putting a golden set to an application, recorded and judged."""

from steelyard.golden.running._app import App, app_from, load_object
from steelyard.golden.running._outputs import HOW_TO_ASK, NOTHING_ASKED
from steelyard.golden.running._reply import read_reply

__all__ = [
    "HOW_TO_ASK",
    "NOTHING_ASKED",
    "App",
    "app_from",
    "load_object",
    "read_reply",
]
