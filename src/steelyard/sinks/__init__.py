"""The sinks room: where Evaluations go, one file each."""

from steelyard.sinks._sink import Sink

__all__ = ["Sink"]
