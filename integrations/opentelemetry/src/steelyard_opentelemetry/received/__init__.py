"""Spans that other processes send: OTLP requests taken apart by trace, and the turns in them."""

from steelyard_opentelemetry.received._assembler import ReceivedSpans

__all__ = ["ReceivedSpans"]
