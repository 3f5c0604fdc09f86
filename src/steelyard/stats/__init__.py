"""The stats room: what a set of scores means."""

from steelyard.stats._summary import MetricSummary, Summarizer

__all__ = [
    "MetricSummary",
    "Summarizer",
]
