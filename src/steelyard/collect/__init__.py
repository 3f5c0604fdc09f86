"""The collect room: an OTLP endpoint, so that a process in any language can send its spans.

Spans are stored in a journal before the sender is told that they have arrived; turns are put together in the
background and handed to a Monitor with a spool; what has been handed over safely leaves the journal.
"""

from steelyard.collect._app import app
from steelyard.collect._collector import Collector, CollectorCounts
from steelyard.collect._journal import Journal
from steelyard.collect._protocol import Export, SpanReader

__all__ = ["Collector", "CollectorCounts", "Export", "Journal", "SpanReader", "app"]
