"""Applications of LangChain and LangGraph."""

from generator.langchain.axes import axes
from generator.langchain.run import run

__all__ = ["axes", "run"]
