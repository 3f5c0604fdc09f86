"""Steelyard's recorder for LangChain."""
