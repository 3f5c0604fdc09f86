"""Chat models as judges: any OpenAI-compatible endpoint, and the model objects of other frameworks."""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.judge.chat._adapter import ModelEmbedder, ModelJudge
from steelyard.judge.chat._adapter import ModelOptions as ModelOptions
from steelyard.judge.chat._adapter import model_name as model_name
from steelyard.judge.chat._judge import ChatJudge as ChatJudge
from steelyard.judge.chat._writer import ChatWriter as ChatWriter
from steelyard.judge.chat._writer import Written as Written
from steelyard.judge.endpoint import usage_of as usage_of

__all__ = ["ModelEmbedder", "ModelJudge"]
