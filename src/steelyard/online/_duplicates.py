"""Turns that two recorders reported: not merged, since nothing tells which one is right, but logged."""

from __future__ import annotations

from steelyard._internal.bounded import BoundedDict
from steelyard._internal.logs import SafeLogger
from steelyard._internal.warn_once import WarnOnce
from steelyard.record import Record

_log = SafeLogger("steelyard.online")
_SPANS = "opentelemetry"
_REMEMBERED = 1000


class DuplicateRecorderCheck:
    """Warns, once, that a framework's recorder and the span processor record the same turns.

    They need not agree on ids, not even on the trace, so question and answer tell.
    """

    def __init__(self) -> None:
        self._latest: BoundedDict[int, str] = BoundedDict(max_items=_REMEMBERED)
        self._warn = WarnOnce(_log)

    def look(self, record: Record) -> None:
        """Compare a turn with the latest thousand."""
        framework = record.trace.framework if record.trace else None
        if not framework or not record.answer:
            return
        key = hash((record.question, record.answer))
        other = self._latest.setdefault(key, framework)
        if other != framework and _SPANS in (other, framework):
            self._warn(
                "twice",
                "a turn was recorded from its spans and by the recorder for %s, and is scored twice; "
                "use EvaluationSpanProcessor or the recorder, not both",
                framework if other == _SPANS else other,
            )
