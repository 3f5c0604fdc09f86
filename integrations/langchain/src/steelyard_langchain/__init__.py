"""Steelyard's recorder for LangChain and LangGraph: running chains become Records, one per RAG turn."""

from steelyard_langchain._feedback import feedback
from steelyard_langchain._handler import CallbackHandler, Recorder

__all__ = ["CallbackHandler", "Recorder", "feedback"]
