"""An OTLP endpoint, so that a process in any language can send its spans.

Log records that carry the content of spans are taken too. What is taken is stored in a journal before the
sender is told that it has arrived; turns are put together in the background and handed to a Monitor with a
spool; what has been handed over safely leaves the journal.
"""

# `import x as x`: for the other rooms of the project, and not public.
from steelyard.collect._app import app
from steelyard.collect._collector import Collector, CollectorCounts
from steelyard.collect._collector import ReadExport as ReadExport
from steelyard.collect._collector import Signal as Signal
from steelyard.collect._collector import SpanReader as SpanReader
from steelyard.collect._journal import JournalFull as JournalFull
from steelyard.collect._journal import SpanJournal as SpanJournal

__all__ = [
    "Collector",
    "CollectorCounts",
    "app",
]
