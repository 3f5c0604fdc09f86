"""Steelyard's recorder for LangChain and LangGraph: running chains become Records, one per RAG turn."""

from steelyard_langchain._attach import attach, detach
from steelyard_langchain._feedback import feedback
from steelyard_langchain._handler import CallbackHandler, Recorder
from steelyard_langchain._record_block import Recording, record

__all__ = ["CallbackHandler", "Recorder", "Recording", "attach", "detach", "feedback", "record"]
