"""Steelyard: weigh RAG answers while the application runs.

The names below load what they need when they are first used, so that importing the package stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports

if TYPE_CHECKING:
    from steelyard.engine import Results, aevaluate, evaluate
    from steelyard.errors import SteelyardError
    from steelyard.online import Monitor
    from steelyard.record import Context, Record
    from steelyard.scores import Evaluation, Score

__all__ = [
    "Context",
    "Evaluation",
    "Monitor",
    "Record",
    "Results",
    "Score",
    "SteelyardError",
    "aevaluate",
    "evaluate",
]

__version__ = "0.2.0"

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Context": "steelyard.record",
        "Evaluation": "steelyard.scores",
        "Monitor": "steelyard.online",
        "Record": "steelyard.record",
        "Results": "steelyard.engine",
        "Score": "steelyard.scores",
        "SteelyardError": "steelyard.errors",
        "aevaluate": "steelyard.engine",
        "evaluate": "steelyard.engine",
    },
)
