"""What is remembered of recorded turns and their model calls, so that nobody records one a second time.

Two instrumentors that watch one application tell a turn twice, with the same words. A framework that reports
through events of its own does not make its spans current, so that the spans of the model client, seen by
another instrumentor, are roots of traces of their own. Nothing links them; the same call at the same time, by
the same reply to the same words, tells that they are one. So it does of a gateway, a service that calls the
model for another one, and begins a trace where that hands no context on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from steelyard._internal.bounded import BoundedDict
from steelyard_opentelemetry.building._turn import Turn
from steelyard_opentelemetry.spans._documents import documents_in
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._tree import Node

_REMEMBERED_TEXT = 1000
_WITHOUT_PARENTS = "@traceloop/instrumentation-langchain"
"""An instrumentor that begins a trace for each run, so that a step of a turn looks like a turn."""
_MOST_REPLIES = 512
_MOST_ALIKE = 64
_MOST_TEXT = 300
_FEWEST_WORDS = 4
"""Words that a reply must have to be told by them, where nothing shows what was asked."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TurnFingerprint:
    """What is remembered of a turn, without keeping its spans alive."""

    dialects: frozenset[str]
    service: str
    start: int
    end: int
    question: str
    trace_id: str = ""
    is_step: bool = False
    """Whether it was handed its documents, and its instrumentor does not say which run it belongs to."""
    callers: frozenset[str] = frozenset()
    """Who told it, where it is a model call by itself."""
    told_by: set[frozenset[str]] = field(default_factory=set)
    """Who has told the same turn again: another instrumentor tells each turn once."""

    @classmethod
    def of(cls, turn: Turn) -> TurnFingerprint:
        """The fingerprint of a turn."""
        span = turn.root.span
        dialects = frozenset(parsed.dialect for _, parsed in turn.parsed)
        return cls(
            dialects,
            span.service,
            span.start,
            span.end,
            turn.question[:_REMEMBERED_TEXT],
            span.trace_id,
            _is_step(turn),
            _callers(turn),
        )

    def is_told(self, others: Sequence[TurnFingerprint], *, is_piece: bool, in_trace: bool) -> bool:
        """Whether one of the turns with the same words is this one, seen by another instrumentor.

        Each instrumentor tells a turn once: what it tells again is another turn.

        Args:
            others: The turns that were told before.
            is_piece: Whether this is a lone model call; one that ran within the other turn is that turn's.
            in_trace: Whether only those in the same trace are looked at.
        """
        near = (other for other in others if not in_trace or other.trace_id == self.trace_id)
        twin = next((other for other in near if self._is_twin(other, is_piece=is_piece)), None)
        if twin is not None and not is_piece:
            twin.told_by.add(self.dialects)
        return twin is not None

    def _is_twin(self, other: TurnFingerprint, *, is_piece: bool) -> bool:
        if self.service != other.service:
            return False
        if is_piece:
            # Another call by itself, told by the same instrumentors, is another user's with the same words.
            is_other_call = bool(self.callers) and self.callers <= other.callers
            return other.start <= self.start <= other.end and not is_other_call
        if self._holds(other) or other._holds(self):
            return True
        overlap = self.start <= other.end and other.start <= self.end
        return overlap and self.dialects != other.dialects and self.dialects not in other.told_by

    def _holds(self, step: TurnFingerprint) -> bool:
        """Whether a step in a trace of its own ran within this turn."""
        is_elsewhere = step.is_step and step.trace_id != self.trace_id
        return is_elsewhere and self.start <= step.start and step.end <= self.end


def _is_step(turn: Turn) -> bool:
    span, parsed = turn.root.span, turn.root.parsed
    if span.scope != _WITHOUT_PARENTS or span.parent_id is not None or parsed is None:
        return False
    return bool(parsed.passing) and bool(documents_in(parsed.passing[0]))


def _callers(turn: Turn) -> frozenset[str]:
    root = turn.root
    if root.parsed is None or root.parsed.kind != "llm":
        return frozenset()
    return frozenset(node.span.scope for node, _ in turn.seen("llm"))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Told:
    """A call, or a step that came to what a call replied, without its span."""

    trace_id: str
    service: str
    start: int
    end: int
    asked: str
    told_by: set[tuple[str, str]] = field(default_factory=set)
    """Services and scopes of its turn, and of who told it again: each instrumentor tells a call once."""


class CallDeduplicator:
    """What models replied in recorded turns of late, within bounds."""

    def __init__(self) -> None:
        self._by_reply: BoundedDict[bytes, list[_Told]] = BoundedDict(max_items=_MOST_REPLIES)

    def remember(self, turn: Turn) -> None:
        """Keep what was replied in a turn that was recorded."""
        tellers = {(node.span.service, node.span.scope) for node, _ in turn.parsed}
        for node, parsed in turn.seen("llm", "chain", "agent"):
            span = node.span
            asked = _plain(_asked(parsed))
            told = _Told(span.trace_id, span.service, span.start, span.end, asked, set(tellers))
            for key in _keys(parsed):
                known = self._by_reply[key] = self._by_reply.get(key, [])
                known.append(told)
                del known[:-_MOST_ALIKE]

    def hold(self, turn: Turn) -> bool:
        """Whether each model call of a turn was told before, in one trace, by other instrumentors."""
        found: list[tuple[_Told, tuple[str, str]]] = []
        for node, parsed in turn.llms:
            twin = self._twin(node, parsed)
            # A gateway passes calls on and retrieves nothing: what does is another application's turn.
            if twin is None or (turn.retrieves and twin.service != node.span.service):
                return False
            found.append((twin, (node.span.service, node.span.scope)))
        if len({twin.trace_id for twin, _ in found}) != 1:
            return False
        for twin, teller in found:
            twin.told_by.add(teller)
        return True

    def _twin(self, node: Node, parsed: ParsedSpan) -> _Told | None:
        said = " ".join(_plain(message.text) for message in parsed.messages if message.role == "user")
        known = (told for key in _keys(parsed) for told in self._by_reply.get(key, ()))
        return next((told for told in known if _is_same(told, node, said, parsed.answer)), None)


def _is_same(told: _Told, node: Node, said: str, reply: str) -> bool:
    """Whether a call is one that was told, seen by another instrumentor or by a gateway."""
    span = node.span
    if (span.service, span.scope) in told.told_by or told.start > span.end or span.start > told.end:
        return False
    if not (told.asked and said):
        return told.service == span.service and len(reply.split()) >= _FEWEST_WORDS
    return told.asked in said or said in told.asked


def _keys(parsed: ParsedSpan) -> Iterator[bytes]:
    """What a reply is known by: its text, else what it called tools with, however that is spaced."""
    texts = (
        [_plain(parsed.answer)] if parsed.answer.strip() else ["".join(a.split()) for a in parsed.arguments]
    )
    return (_digest(text) for text in texts if text)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def _asked(parsed: ParsedSpan) -> str:
    """What was asked last, within a bound; of a step, its question."""
    said = [message.text for message in parsed.messages if message.role == "user" and message.text.strip()]
    return (said[-1] if said else parsed.question)[:_MOST_TEXT]


def _plain(text: str) -> str:
    return " ".join(text.split())
