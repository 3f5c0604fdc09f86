"""Embedders: texts become vectors. Each loads its libraries when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.judge.embed._minilm import MiniLMEmbedder
    from steelyard.judge.embed._openai import OpenAIEmbedder
    from steelyard.judge.embed._static import StaticEmbedder

__all__ = ["MiniLMEmbedder", "OpenAIEmbedder", "StaticEmbedder"]

_LAZY = {"MiniLMEmbedder": "_minilm", "OpenAIEmbedder": "_openai", "StaticEmbedder": "_static"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'steelyard.judge.embed' has no attribute {name!r}")
    return getattr(import_module(f"steelyard.judge.embed.{_LAZY[name]}"), name)
