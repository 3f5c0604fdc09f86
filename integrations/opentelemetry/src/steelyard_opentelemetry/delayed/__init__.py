"""Delayed export: a root span waits for a bounded time, so that it leaves with its scores."""

from steelyard_opentelemetry.delayed._pending import HoldingCounts
from steelyard_opentelemetry.delayed._processor import HoldingSpanProcessor

__all__ = ["HoldingCounts", "HoldingSpanProcessor"]
