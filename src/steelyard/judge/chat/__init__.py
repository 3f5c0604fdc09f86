"""Chat models as judges: any OpenAI-compatible endpoint, and the model objects of other frameworks."""

from steelyard.judge._openai_client import usage_of
from steelyard.judge.chat._adapter import ModelEmbedder, ModelJudge, model_name
from steelyard.judge.chat._asked import without_nonce
from steelyard.judge.chat._instructed import KNOWN_ANSWERS
from steelyard.judge.chat._judge import ChatJudge
from steelyard.judge.chat._writer import ChatWriter, Written

__all__ = [
    "KNOWN_ANSWERS",
    "ChatJudge",
    "ChatWriter",
    "ModelEmbedder",
    "ModelJudge",
    "Written",
    "model_name",
    "usage_of",
    "without_nonce",
]
