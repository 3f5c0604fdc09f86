"""Steelyard: weigh RAG answers while the application runs.

The names below load what they need when they are first used, so that importing the package stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

__version__ = "0.1.0"

_ROOMS = {
    "Context": "record",
    "Evaluation": "scores",
    "Monitor": "online",
    "Record": "record",
    "Results": "engine",
    "Score": "scores",
    "SteelyardError": "errors",
    "aevaluate": "engine",
    "evaluate": "engine",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    return getattr(import_module(f"steelyard.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
