"""Steelyard's recorder for LlamaIndex."""
