"""The judges that answer questions, and the embedders.

Each loads its libraries when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports

if TYPE_CHECKING:
    from steelyard.judge._by_name import judge_from
    from steelyard.judge.chat import ChatJudge
    from steelyard.judge.decisions import DecisionsJudge
    from steelyard.judge.embed import MiniLMEmbedder, OpenAIEmbedder, StaticEmbedder
    from steelyard.judge.local import LocalJudge
    from steelyard.judge.local._locate import locate, locate_all
    from steelyard.judge.pair import PairJudge, PairLabels
    from steelyard.judge.systemone import SystemOneJudge

__all__ = [
    "ChatJudge",
    "DecisionsJudge",
    "LocalJudge",
    "MiniLMEmbedder",
    "OpenAIEmbedder",
    "PairJudge",
    "PairLabels",
    "StaticEmbedder",
    "SystemOneJudge",
    "judge_from",
    "locate",
    "locate_all",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ChatJudge": "steelyard.judge.chat",
        "DecisionsJudge": "steelyard.judge.decisions",
        "LocalJudge": "steelyard.judge.local",
        "MiniLMEmbedder": "steelyard.judge.embed",
        "OpenAIEmbedder": "steelyard.judge.embed",
        "PairJudge": "steelyard.judge.pair",
        "PairLabels": "steelyard.judge.pair",
        "StaticEmbedder": "steelyard.judge.embed",
        "SystemOneJudge": "steelyard.judge.systemone",
        "judge_from": "steelyard.judge._by_name",
        "locate": "steelyard.judge.local._locate",
        "locate_all": "steelyard.judge.local._locate",
    },
)
