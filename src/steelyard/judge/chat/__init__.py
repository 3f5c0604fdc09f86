"""Chat models as judges: any OpenAI-compatible endpoint, and the model objects of other frameworks."""

from steelyard.judge._replies import usage_of
from steelyard.judge.chat._adapter import ModelEmbedder, ModelJudge, ModelOptions, model_name
from steelyard.judge.chat._judge import ChatJudge
from steelyard.judge.chat._writer import ChatWriter, Written

__all__ = [
    "ChatJudge",
    "ChatWriter",
    "ModelEmbedder",
    "ModelJudge",
    "ModelOptions",
    "Written",
    "model_name",
    "usage_of",
]
