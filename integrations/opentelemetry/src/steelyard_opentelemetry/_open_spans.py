"""The open spans of instrumentors, by scope and in order of start, so that the earliest is found at once."""

from __future__ import annotations

from bisect import bisect_left, insort

from steelyard_opentelemetry.dialects import known_scope

_Entry = tuple[int, str, str]


class OpenSpans:
    """Open spans whose scope a dialect knows; those of other scopes are left out."""

    def __init__(self) -> None:
        self._by_scope: dict[str, list[_Entry]] = {}

    def add(self, scope: str, start: int, trace_id: str, span_id: str) -> None:
        """Note that a span is open."""
        if known_scope(scope):
            insort(self._by_scope.setdefault(scope, []), (start, trace_id, span_id))

    def remove(self, scope: str, start: int, trace_id: str, span_id: str) -> None:
        """Note that a span is not open any more."""
        entry = (start, trace_id, span_id)
        known = self._by_scope.get(scope, [])
        at = bisect_left(known, entry)
        if known[at : at + 1] == [entry]:
            del known[at]
            if not known:
                del self._by_scope[scope]

    def began_elsewhere(self, scope: str, start: int, trace_id: str) -> bool:
        """Whether a span of another scope, in another trace, had begun by then."""
        for other, known in self._by_scope.items():
            for began, trace, _ in known if other != scope else ():
                if began > start:
                    break
                if trace != trace_id:
                    return True
        return False
