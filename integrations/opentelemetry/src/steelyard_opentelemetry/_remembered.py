"""What is remembered of turns and their model calls, so that nothing is recorded twice or taken for evidence.

Two instrumentors that watch one application tell a turn twice, with the same words. A framework that reports
through events of its own does not make its spans current, so that the spans of the model client, seen by
another instrumentor, are roots of traces of their own. Nothing links them; the same call at the same time, by
the same reply to the same words, tells that they are one. So it does of a gateway, a service that calls the
model for another one, and begins a trace where that hands no context on.

A question that is answered in parts, below a span that says nothing of it, is one turn in truth. Each part
with a span of its own stays a Record; what models said before it tells that it is one, and is no evidence.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from operator import attrgetter

from steelyard._internal.bounded import BoundedDict
from steelyard.recording.provenance import ModelCall, notes_on_predecessors
from steelyard_opentelemetry._documents import documents_in
from steelyard_opentelemetry._evidence import FoundPassages
from steelyard_opentelemetry._payload import squeezed
from steelyard_opentelemetry._span import Node, ParsedSpan, Span
from steelyard_opentelemetry._turn import Turn

_PASSED_ON = (
    "a later model call was told this answer, so it may be a step on the way to another one; set the output "
    "of the span around the turn, or steelyard.answer"
)
_MOST_PLACES = 128
_MOST_CALLS = 24
_MOST_SAID = 20_000
_end_of = attrgetter("end")


@dataclass(frozen=True, slots=True)
class _Said:
    """A model call that has ended, without its span."""

    span_id: str
    start: int
    end: int
    call: ModelCall
    told: str = field(repr=False)
    """The last message, without the conversation before it."""

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
            for (node, parsed), call in zip(turn.llms, turn.calls, strict=True):
                if call.replies:
                    told = "".join(parsed.texts[-1:])
                    said = _Said(node.span.span_id, node.span.start, node.span.end, call, told[:_MOST_SAID])
                    # The reply is what counts; a call that seems to have been sent nothing wrote all of it.
                    said = said if said.size <= _MOST_SAID else replace(said, call=replace(call, prompts=()))
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
        # Of what stands in another trace only the question is looked for.
        told = told or notes_on_predecessors(
            turn.question, turn.calls, self.of_service(turn), found=(), in_conversation=True
        )
        return [*told, _PASSED_ON] if self._is_passed_on(turn) else told

    def _is_passed_on(self, turn: Turn) -> bool:
        """Whether a later call of the same service was told what this turn came to."""
        answer, end = squeezed(turn.answer), turn.root.span.end
        if any(parsed.answer for _, parsed in turn.seen("chain", "agent", "turn")):
            return False
        later = (said for said in self._said.get(_of_service(turn.root.span), ()) if said.start >= end)
        able = len(answer.split()) >= _FEWEST_WORDS or not answer.isascii()
        return able and any(answer in squeezed(said.told) for said in later)


def _latest(known: Sequence[_Said], until: int) -> list[_Said]:
    """The last of some calls, up to a place among them, that are few and short enough."""
    found: list[_Said] = []
    room = _MOST_SAID
    for said in reversed(known[max(0, until - _MOST_CALLS) : until]):
        room -= said.size
        if room < 0:
            break
        found.append(said)
    return found[::-1]


def _of_service(span: Span) -> str:
    # No trace id has a slash.
    return f"service/{span.service}"


_WITHOUT_PARENTS = "@traceloop/instrumentation-langchain"
"""An instrumentor that begins a trace for each run, so that a step of a turn looks like a turn."""
_MOST_TOLD = 1024
_MOST_ALIKE = 64
_MOST_TEXT = 300
_AFTERWARDS = 60_000_000_000
_FEWEST_WORDS = 4
"""Words that a reply must have to be told by them, where nothing shows what was asked."""

_Teller = tuple[str, str]
"""A service, and the scope of an instrumentor in it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Told:
    """A turn, a call, or a step that came to what a call replied, without its span."""

    trace_id: str
    service: str
    start: int
    end: int
    asked: str
    is_step: bool
    """Whether it may be a part of a turn that is told in another trace."""
    after: int
    """Nanoseconds before it in which what it tells may have happened: code may write spans afterwards."""
    told_by: set[_Teller]
    """Who told its turn, and who told it again: each instrumentor tells a turn and a call once."""


class TurnDeduplicator:
    """What was asked and answered, and what models replied, in recorded turns of late, within bounds."""

    def __init__(self) -> None:
        self._by_words: BoundedDict[bytes, list[_Told]] = BoundedDict(max_items=_MOST_TOLD)

    def remember(self, turn: Turn) -> None:
        """Keep what was said in a turn that was recorded."""
        tellers = {(node.span.service, node.span.scope) for node, _ in turn.parsed}
        is_step = _is_step(turn)
        keys = [(turn.root, "", turn_key(turn))]
        after = 0 if turn.llms else _AFTERWARDS
        for node, parsed in turn.seen("llm", "chain", "agent"):
            keys += [(node, squeezed(_asked(parsed)), key) for key in _keys(parsed)]
        for node, asked, key in keys:
            span = node.span
            known = self._by_words[key] = self._by_words.get(key, [])
            known.append(
                _Told(span.trace_id, span.service, span.start, span.end, asked, is_step, after, set(tellers))
            )
            del known[:-_MOST_ALIKE]

    def hold(self, turn: Turn) -> bool:
        """Whether another instrumentor told this turn before, or in one trace each of its model calls."""
        found = self._told_whole(turn) or self._told_calls(turn)
        for told, teller in found:
            told.told_by.add(teller)
        return bool(found)

    def _told_whole(self, turn: Turn) -> list[tuple[_Told, _Teller]]:
        """The turn with the same question and answer, at the same time in the same service."""
        span = turn.root.span
        scope = next((node.span.scope for node, _ in turn.parsed), "")
        is_step = _is_step(turn)
        for told in self._by_words.get(turn_key(turn), ()):
            is_part = told.trace_id != span.trace_id and (
                (is_step > told.is_step and told.start <= span.start and span.end <= told.end)
                or (is_step < told.is_step and span.start <= told.start and told.end <= span.end)
            )
            is_again = (span.service, scope) not in told.told_by and _overlap(told, span)
            if told.service == span.service and (is_part or is_again):
                return [(told, (span.service, scope))]
        return []

    def _told_calls(self, turn: Turn) -> list[tuple[_Told, _Teller]]:
        found: list[tuple[_Told, _Teller]] = []
        for node, parsed in turn.llms:
            twin = self._twin(node, parsed)
            # A gateway passes calls on and retrieves nothing: what does is another application's turn.
            if twin is None or (turn.retrieves and twin.service != node.span.service):
                return []
            found.append((twin, (node.span.service, node.span.scope)))
        return found if len({twin.trace_id for twin, _ in found}) == 1 else []

    def _twin(self, node: Node, parsed: ParsedSpan) -> _Told | None:
        said = " ".join(squeezed(message.text) for message in parsed.messages if message.role == "user")
        known = (told for key in _keys(parsed) for told in self._by_words.get(key, ()))
        return next((told for told in known if _is_same(told, node, said, parsed.answer)), None)


def _is_same(told: _Told, node: Node, said: str, reply: str) -> bool:
    """Whether a call is one that was told, seen by another instrumentor or by a gateway."""
    span = node.span
    if (span.service, span.scope) in told.told_by or not _overlap(told, span):
        return False
    if not (told.asked and said):
        return told.service == span.service and len(reply.split()) >= _FEWEST_WORDS
    return told.asked in said or said in told.asked


def _overlap(told: _Told, span: Span) -> bool:
    return told.start - told.after <= span.end and span.start <= told.end


def _is_step(turn: Turn) -> bool:
    """Whether a turn is a model call, or a step that was handed its documents, and no run above is told."""
    if is_call(turn):
        return True
    span, parsed = turn.root.span, turn.root.parsed
    if span.scope != _WITHOUT_PARENTS or span.parent_id is not None or parsed is None:
        return False
    return bool(parsed.passing) and bool(documents_in(parsed.passing[0]))


def is_call(turn: Turn) -> bool:
    """Whether a turn is a model call by itself, which another instrumentor may have told too."""
    root = turn.root
    return root.parsed is not None and root.parsed.kind == "llm" and root.span.parent_id is None


def turn_key(turn: Turn) -> bytes:
    """A turn's question and answer, however they are spaced."""
    return _digest(f"{squeezed(turn.question)}\0{squeezed(turn.answer)}")


def _keys(parsed: ParsedSpan) -> Iterator[bytes]:
    """What a reply is known by: its text, else what it called tools with, however that is spaced."""
    texts = (
        [squeezed(parsed.answer)] if parsed.answer.strip() else ["".join(a.split()) for a in parsed.arguments]
    )
    return (_digest(text) for text in texts if text)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def _asked(parsed: ParsedSpan) -> str:
    """What was asked last, within a bound; of a step, its question."""
    said = [message.text for message in parsed.messages if message.role == "user" and message.text.strip()]
    return (said[-1] if said else parsed.question)[:_MOST_TEXT]
