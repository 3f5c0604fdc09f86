"""Applications whose spans are written by hand or by vendors' SDKs, in any mixture of their ways."""

from generator.written.applications import axes, run

__all__ = ["axes", "run"]
