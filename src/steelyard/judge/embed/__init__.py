"""Embedders: texts become vectors. Each loads its libraries when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._internal.lazy import lazy_exports

if TYPE_CHECKING:
    from steelyard.judge.embed._minilm import MiniLMEmbedder
    from steelyard.judge.embed._openai import OpenAIEmbedder
    from steelyard.judge.embed._static import StaticEmbedder

__all__ = ["MiniLMEmbedder", "OpenAIEmbedder", "StaticEmbedder"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "MiniLMEmbedder": "steelyard.judge.embed._minilm",
        "OpenAIEmbedder": "steelyard.judge.embed._openai",
        "StaticEmbedder": "steelyard.judge.embed._static",
    },
)
