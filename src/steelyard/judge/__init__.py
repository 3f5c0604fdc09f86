"""The judge room: the judges that answer questions, and the embedders.

Each loads its libraries when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.judge._by_name import judge_from
    from steelyard.judge.chat import ChatJudge
    from steelyard.judge.decisions import DecisionsJudge
    from steelyard.judge.embed import MiniLMEmbedder, OpenAIEmbedder, StaticEmbedder
    from steelyard.judge.local import LocalJudge

__all__ = [
    "ChatJudge",
    "DecisionsJudge",
    "LocalJudge",
    "MiniLMEmbedder",
    "OpenAIEmbedder",
    "StaticEmbedder",
    "judge_from",
]

_LAZY = {
    "ChatJudge": "chat",
    "DecisionsJudge": "decisions",
    "LocalJudge": "local",
    "MiniLMEmbedder": "embed",
    "OpenAIEmbedder": "embed",
    "StaticEmbedder": "embed",
    "judge_from": "_by_name",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'steelyard.judge' has no attribute {name!r}")
    return getattr(import_module(f"steelyard.judge.{_LAZY[name]}"), name)
