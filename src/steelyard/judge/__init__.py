"""The judges that answer questions, and the embedders.

Each loads its libraries when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports

if TYPE_CHECKING:
    from steelyard.judge._by_name import judge_from
    from steelyard.judge._coverage import QuestionWords, coverage, question_words, stems_of
    from steelyard.judge._locate import locate, locate_all
    from steelyard.judge.chat import ChatJudge
    from steelyard.judge.decisions import DecisionsJudge
    from steelyard.judge.embed._minilm import MiniLMEmbedder
    from steelyard.judge.embed._openai import OpenAIEmbedder
    from steelyard.judge.embed._static import StaticEmbedder
    from steelyard.judge.local._judge import LocalJudge
    from steelyard.judge.pair._judge import PairJudge
    from steelyard.judge.pair._labels import PairLabels

__all__ = [
    "ChatJudge",
    "DecisionsJudge",
    "LocalJudge",
    "MiniLMEmbedder",
    "OpenAIEmbedder",
    "PairJudge",
    "PairLabels",
    "QuestionWords",
    "StaticEmbedder",
    "coverage",
    "judge_from",
    "locate",
    "locate_all",
    "question_words",
    "stems_of",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ChatJudge": "steelyard.judge.chat",
        "DecisionsJudge": "steelyard.judge.decisions",
        "LocalJudge": "steelyard.judge.local._judge",
        "MiniLMEmbedder": "steelyard.judge.embed._minilm",
        "OpenAIEmbedder": "steelyard.judge.embed._openai",
        "PairJudge": "steelyard.judge.pair._judge",
        "PairLabels": "steelyard.judge.pair._labels",
        "StaticEmbedder": "steelyard.judge.embed._static",
        "judge_from": "steelyard.judge._by_name",
        "locate": "steelyard.judge._locate",
        "locate_all": "steelyard.judge._locate",
        "coverage": "steelyard.judge._coverage",
        "QuestionWords": "steelyard.judge._coverage",
        "question_words": "steelyard.judge._coverage",
        "stems_of": "steelyard.judge._coverage",
    },
)
