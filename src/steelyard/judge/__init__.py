"""The judges that answer questions, and the embedders.

Each loads its libraries when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports

if TYPE_CHECKING:
    from steelyard.judge._by_name import HERE as HERE
    from steelyard.judge._by_name import judge_from
    from steelyard.judge._by_name import kind_of as kind_of
    from steelyard.judge._minilm import MiniLMEmbedder
    from steelyard.judge._openai import OpenAIEmbedder
    from steelyard.judge._static import StaticEmbedder
    from steelyard.judge.chat import ChatJudge
    from steelyard.judge.decisions import DecisionsJudge
    from steelyard.judge.local._judge import LocalJudge
    from steelyard.judge.pair import PairJudge, PairLabels

__all__ = [
    "ChatJudge",
    "DecisionsJudge",
    "LocalJudge",
    "MiniLMEmbedder",
    "OpenAIEmbedder",
    "PairJudge",
    "PairLabels",
    "StaticEmbedder",
    "judge_from",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ChatJudge": "steelyard.judge.chat",
        "DecisionsJudge": "steelyard.judge.decisions",
        "LocalJudge": "steelyard.judge.local._judge",
        "MiniLMEmbedder": "steelyard.judge._minilm",
        "OpenAIEmbedder": "steelyard.judge._openai",
        "PairJudge": "steelyard.judge.pair",
        "PairLabels": "steelyard.judge.pair",
        "StaticEmbedder": "steelyard.judge._static",
        "HERE": "steelyard.judge._by_name",
        "judge_from": "steelyard.judge._by_name",
        "kind_of": "steelyard.judge._by_name",
    },
)
