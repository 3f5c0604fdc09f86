"""Turns that two recorders told: not merged, since nothing says which one is right, but said."""

from __future__ import annotations

import logging

from steelyard.record import Record

__all__ = ["DuplicateRecorderCheck"]

_log = logging.getLogger("steelyard.online")
_SPANS = "opentelemetry"
_REMEMBERED = 1000


class DuplicateRecorderCheck:
    """Says once that a framework's recorder and the span processor record the same turns.

    They need not agree on ids, not even on the trace, so question and answer tell.
    """

    def __init__(self) -> None:
        self._latest: dict[int, str] = {}
        self._said = False

    def look(self, record: Record) -> None:
        """Compare a turn with the latest thousand."""
        framework = record.trace.framework if record.trace else None
        if self._said or not framework or not record.answer:
            return
        key = hash((record.question, record.answer))
        other = self._latest.setdefault(key, framework)
        if other != framework and _SPANS in (other, framework):
            self._said = True
            _log.warning(
                "a turn was recorded from its spans and by the recorder for %s, and is scored twice; "
                "use EvaluationSpanProcessor or the recorder, not both",
                framework if other == _SPANS else other,
            )
        if len(self._latest) > _REMEMBERED:
            del self._latest[next(iter(self._latest))]
