"""Delayed export: a root span waits for a bounded time, so that it leaves with its scores."""

from steelyard_opentelemetry.delayed._processor import HoldingCounts, HoldingSpanProcessor

__all__ = ["HoldingCounts", "HoldingSpanProcessor"]
