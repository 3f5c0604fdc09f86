"""Embedders: texts become vectors."""

from steelyard.judge.embed._openai import OpenAIEmbedder
from steelyard.judge.embed._static import StaticEmbedder

__all__ = ["OpenAIEmbedder", "StaticEmbedder"]
