"""Applications of plain Python over OpenAI's client: what they find, no framework sees."""

from generator.plain.applications import axes, run

__all__ = ["axes", "run"]
