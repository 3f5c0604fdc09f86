"""Chat models as judges: any OpenAI-compatible endpoint, and the model objects of other frameworks."""

from steelyard.judge._openai_client import usage_of
from steelyard.judge.chat._adapter import ModelEmbedder, ModelJudge, model_name
from steelyard.judge.chat._judge import ChatJudge

__all__ = ["ChatJudge", "ModelEmbedder", "ModelJudge", "model_name", "usage_of"]
