"""Applications of LlamaIndex."""

from generator.llamaindex.axes import axes
from generator.llamaindex.run import run

__all__ = ["axes", "run"]
