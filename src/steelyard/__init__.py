"""Steelyard: weigh RAG answers while the application runs."""
