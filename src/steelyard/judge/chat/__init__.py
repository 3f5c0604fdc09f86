"""Any OpenAI-compatible chat model as a judge."""

from steelyard.judge.chat._judge import ChatJudge

__all__ = [
    "ChatJudge",
]
