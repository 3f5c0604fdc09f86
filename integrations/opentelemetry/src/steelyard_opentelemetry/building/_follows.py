"""What models replied before a turn began, in traces that nothing links to it.

A question that is answered in parts, below a span that says nothing of it, is one turn in truth. Each part
with a span of its own stays a Record; what models said before it tells that it is one, and is no evidence.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from steelyard._internal.bounded import BoundedDict
from steelyard.recording.provenance import ModelCall, notes_on_predecessors, sentence
from steelyard_opentelemetry.building._evidence import FoundPassages
from steelyard_opentelemetry.building._turn import Turn
from steelyard_opentelemetry.spans._span import Span

_REWRITTEN = sentence("question_rewritten_only")
_WRITTEN = (
    f"{_REWRITTEN}; a model wrote it earlier in the same trace: a span around both with the user's question, "
    "or steelyard.question, keeps it"
)
_SHOWN = (
    "the model was shown what a model replied earlier in the same trace, and no span that says its question "
    "holds them together; one around all of them does"
)
_MOST_PLACES = 128
_MOST_CALLS = 24
_MOST_TEXT = 20_000
_end_of = attrgetter("end")


@dataclass(frozen=True, slots=True)
class _Said:
    """A model call that has ended, without its span."""

    span_id: str
    end: int
    call: ModelCall

    @property
    def size(self) -> int:
        return sum(map(len, (*self.call.prompts, *self.call.replies)))


class EarlierCalls:
    """What models were sent and replied of late, by trace and by service, within bounds."""

    def __init__(self) -> None:
        self._said: BoundedDict[str, list[_Said]] = BoundedDict(max_items=_MOST_PLACES)

    def remember(self, turns: Iterable[Turn]) -> None:
        """Keep what was said in turns, and in steps beside them, until `forget`."""
        for turn in turns:
            span = turn.root.span
            # Nothing else can follow in the trace of a turn whose span is the trace's root.
            may_follow = span.parent_id is not None or turn.root.parsed is None
            for (node, _), call in zip(turn.llms, turn.calls, strict=True):
                if call.replies:
                    said = _Said(node.span.span_id, node.span.end, call)
                    # The reply is what counts; a call that seems to have been sent nothing wrote all of it.
                    said = said if said.size <= _MOST_TEXT else replace(said, call=replace(call, prompts=()))
                    for place in (_of_service(span), *([span.trace_id] if may_follow else [])):
                        known = self._said[place] = self._said.get(place, [])
                        insort(known, said, key=_end_of)

    def forget(self) -> None:
        """Let go of all but the latest: every turn that was read with them is decided."""
        for known in self._said.values():
            known[:] = _latest(known, len(known))

    def of_service(self, turn: Turn) -> list[ModelCall]:
        """The calls of the same service that had ended when a turn began: a text of theirs is no evidence."""
        return self._before(turn, _of_service(turn.root.span))

    def _before(self, turn: Turn, place: str) -> list[ModelCall]:
        known = self._said.get(place)
        if not known:
            return []
        own = {node.span.span_id for node in turn.nodes}
        begun = min(node.span.start for node in turn.nodes)
        latest = _latest(known, bisect_right(known, begun, key=_end_of))
        return [said.call for said in latest if said.span_id not in own]

    def notes_on(self, turn: Turn, found: FoundPassages) -> list[str]:
        """Say that a turn's question, or a part of its prompt, was written by a model before it began."""
        told = notes_on_predecessors(
            turn.question,
            turn.calls,
            self._before(turn, turn.root.span.trace_id),
            found=found.texts,
            in_conversation=turn.in_conversation,
        )
        return [_WRITTEN if note.startswith(_REWRITTEN) else _SHOWN for note in told]


def _latest(known: Sequence[_Said], until: int) -> list[_Said]:
    """The last of some calls, up to a place among them, that are few and short enough."""
    found: list[_Said] = []
    room = _MOST_TEXT
    for said in reversed(known[max(0, until - _MOST_CALLS) : until]):
        room -= said.size
        if room < 0:
            break
        found.append(said)
    return found[::-1]


def _of_service(span: Span) -> str:
    # No trace id has a slash.
    return f"service/{span.service}"
