"""The judge room: questions, the judges that answer them, and the docket that fuses them.

The judges and embedders at the end of the list load their libraries when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steelyard.judge._answers import Answer, Choice, Level, Texts, Unanswered, Vector, YesNo
from steelyard.judge._docket import Asker, Asking, Docket, Unanswerable, require
from steelyard.judge._judge import Capabilities, Embedder, Judge, Reply, Request, View
from steelyard.judge._questions import (
    Claims,
    Contradicted,
    Embed,
    Entities,
    Noncommittal,
    Part,
    Pick,
    Predicate,
    Question,
    Questions,
    Rating,
    Relevant,
    Same,
    Supported,
    Useful,
)
from steelyard.judge._views import Fuse

if TYPE_CHECKING:
    from steelyard.judge._named import judge_from
    from steelyard.judge.chat import ChatJudge
    from steelyard.judge.decisions import DecisionsJudge
    from steelyard.judge.embed import MiniLMEmbedder, OpenAIEmbedder, StaticEmbedder
    from steelyard.judge.local import LocalJudge

__all__ = [
    "Answer",
    "Asker",
    "Asking",
    "Capabilities",
    "ChatJudge",
    "Choice",
    "Claims",
    "Contradicted",
    "DecisionsJudge",
    "Docket",
    "Embed",
    "Embedder",
    "Entities",
    "Fuse",
    "Judge",
    "Level",
    "LocalJudge",
    "MiniLMEmbedder",
    "Noncommittal",
    "OpenAIEmbedder",
    "Part",
    "Pick",
    "Predicate",
    "Question",
    "Questions",
    "Rating",
    "Relevant",
    "Reply",
    "Request",
    "Same",
    "StaticEmbedder",
    "Supported",
    "Texts",
    "Unanswerable",
    "Unanswered",
    "Useful",
    "Vector",
    "View",
    "YesNo",
    "judge_from",
    "require",
]

_LAZY = {
    "ChatJudge": "chat",
    "DecisionsJudge": "decisions",
    "LocalJudge": "local",
    "MiniLMEmbedder": "embed",
    "OpenAIEmbedder": "embed",
    "StaticEmbedder": "embed",
    "judge_from": "_named",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'steelyard.judge' has no attribute {name!r}")
    return getattr(import_module(f"steelyard.judge.{_LAZY[name]}"), name)
