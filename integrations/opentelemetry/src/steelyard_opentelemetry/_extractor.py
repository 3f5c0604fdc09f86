"""Finding the RAG turns in the spans of some traces.

A turn is usually everything below the topmost span that a dialect knows. Three things make it harder. A span
that no dialect knows (an HTTP server) may hold one turn in pieces or several turns. Where a root never ended,
or an instrumentor starts a new trace halfway, the pieces of one turn have no root in common: they are joined
by content, a retrieval with the model call whose prompt holds its documents or its query. And two
instrumentors that watch the same application tell the same turn twice.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b

from steelyard.record import Record
from steelyard.recording import mark_in_prompt
from steelyard_opentelemetry._build import failure, record_of
from steelyard_opentelemetry._contexts import Found, find_contexts
from steelyard_opentelemetry._diagnosis import Diagnosis, diagnose
from steelyard_opentelemetry._turn import Turn
from steelyard_opentelemetry.spans._span import Span
from steelyard_opentelemetry.spans._tree import Node, grow

_log = logging.getLogger("steelyard.opentelemetry")
_NANO = 1_000_000_000
_FEWEST_WORDS = 2
_REMEMBERED_TRACES, _REMEMBERED_SPANS, _REMEMBERED_TEXT = 1024, 4096, 1000
_MOST_TWINS = 8


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came of some spans."""

    records: list[Record] = field(default_factory=list)
    """One for each RAG turn."""
    diagnoses: list[Diagnosis] = field(default_factory=list)
    """Why the rest gave none."""
    duplicates: int = 0
    """Turns told a second time, by another instrumentor."""


def read(spans: Iterable[Span]) -> Extraction:
    """Every turn in some spans, all at once."""
    reader = TurnExtractor()
    first = reader.read(spans)
    last = reader.close()
    records = sorted([*first.records, *last.records], key=_started)
    return Extraction(records, [*first.diagnoses, *last.diagnoses], first.duplicates)


def _started(record: Record) -> float:
    return (record.timings.started_at if record.timings else None) or 0.0


def holds_turn(spans: Iterable[Span]) -> bool:
    """Whether some spans hold at least one turn from its question to its answer."""
    return any(
        turn.answer and _judgeable(turn, find_contexts(turn))
        for group in _by_trace(spans)
        for tree in grow(group)
        for turn in _candidates(tree)[0]
    )


class TurnExtractor:
    """Reads traces as they complete, and keeps the pieces that may still belong to a turn.

    Args:
        patience: Seconds after which a retrieval without a model call is given up. A model call without a
            retrieval waits for an eighth of that: it may turn out to be part of a turn that ends later.
        most: How many pieces of each kind are kept; the oldest goes first.
    """

    def __init__(self, *, patience: float = 240.0, most: int = 256) -> None:
        self._patience = int(patience * _NANO)
        self._most = most
        self._retrieval_parts: deque[Turn] = deque()
        self._calls: deque[Turn] = deque()
        self._recent: OrderedDict[bytes, list[_TurnFingerprint]] = OrderedDict()
        self._told: OrderedDict[str, dict[str, None]] = OrderedDict()
        self.errors = 0
        """Traces and turns that could not be read."""
        self.late = 0
        """Spans that came after their turn had been recorded, and tell nothing new."""

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        """One trace that cannot be read must not cost the others."""
        try:
            yield
        except Exception:  # noqa: BLE001 - whatever an instrumentor wrote
            self.errors += 1
            if self.errors == 1:
                _log.warning("A trace could not be read; further ones are only counted", exc_info=True)

    @property
    def waiting(self) -> int:
        """How many pieces still wait for what they belong to."""
        return len(self._retrieval_parts) + len(self._calls)

    def read(self, spans: Iterable[Span]) -> Extraction:
        """The turns in the spans of some complete traces."""
        found: list[Turn] = []
        lone: list[Turn] = []
        for group in _by_trace(spans):
            with self._harmless():
                for tree in grow(group):
                    whole, pieces = _candidates(tree)
                    found.extend(whole)
                    lone.extend(pieces)
        joined, left = self._join(lone)
        reading = Extraction()
        for piece in left:
            if piece.messages and piece.answer and not self._is_late(piece):
                self._calls.append(piece)
            else:
                self._leftover(piece, reading)
        kept = self._once([*found, *joined])
        for turn in sorted(kept, key=lambda turn: turn.root.span.start):
            with self._harmless():
                self._settle(self._with_calls(turn), reading)
        return Extraction(reading.records, reading.diagnoses, len(found) + len(joined) - len(kept))

    def overdue(self, now: int) -> Extraction:
        """What has waited long enough.

        Args:
            now: Unix time in nanoseconds.
        """
        reading = Extraction()
        for waiting, patience in (
            (self._retrieval_parts, self._patience),
            (self._calls, self._patience // 8),
        ):
            while waiting and (len(waiting) > self._most or now - waiting[0].root.span.end > patience):
                self._leftover(waiting.popleft(), reading)
        return reading

    def close(self) -> Extraction:
        """Give up what is still waiting."""
        reading = Extraction()
        for waiting in (self._retrieval_parts, self._calls):
            while waiting:
                self._leftover(waiting.popleft(), reading)
        return reading

    def _with_calls(self, turn: Turn) -> Turn:
        """The turn with the model calls that were made on its behalf, but stand in traces of their own."""
        merged = _with(turn, self._calls)
        for call in [call for call in self._calls if _made_by(call, turn)]:
            self._calls.remove(call)
        return merged

    def _is_late(self, piece: Turn) -> bool:
        """Whether a piece only repeats, in another trace, what a recorded turn has told."""
        span = piece.root.span
        return any(
            fingerprint.holds(span.service, span.start)
            and any(fingerprint.question in text for text in piece.prompts)
            for fingerprints in self._recent.values()
            for fingerprint in fingerprints
        )

    def _settle(self, turn: Turn, reading: Extraction) -> None:
        """A record, or the reason why there is none."""
        found = find_contexts(turn)
        if _judgeable(turn, found):
            reading.records.append(record_of(turn, found))
            self._remember(turn)
        else:
            reading.diagnoses.append(diagnose(turn, found))

    def _leftover(self, turn: Turn, reading: Extraction) -> None:
        """A piece that belongs to nothing: a turn of its own if its prompt holds passages, else a reason."""
        span = turn.root.span
        told = self._told.get(span.trace_id, {})
        if span.parent_id in told or (turn.answer and not turn.retrieves and self._is_late(turn)):
            self.late += len(turn.nodes)
        elif turn.answer or turn.retrieves or not told:
            self._settle(turn, reading)
        else:
            self.late += len(turn.nodes)

    def _remember(self, turn: Turn) -> None:
        for node in turn.nodes:
            told = self._told.setdefault(node.span.trace_id, {})
            told[node.span.span_id] = None
            while len(told) > _REMEMBERED_SPANS:
                del told[next(iter(told))]
            self._told.move_to_end(node.span.trace_id)
        while len(self._told) > _REMEMBERED_TRACES:
            self._told.popitem(last=False)

    def _join(self, pieces: Sequence[Turn]) -> tuple[list[Turn], list[Turn]]:
        """Join retrievals with the model calls that used them; returns those turns and what is left over."""
        joined: list[Turn] = []
        left: list[Turn] = []
        for piece in sorted(pieces, key=lambda piece: piece.root.span.start):
            if piece.retrieves:
                self._retrieval_parts.append(piece)
                continue
            parts = self._retrieval_parts_of(piece) if piece.messages else []
            if parts:
                for part in parts:
                    self._retrieval_parts.remove(part)
                joined.append(Turn.of(_root(piece, parts), [*parts, piece]))
            else:
                left.append(piece)
        return joined, left

    def _retrieval_parts_of(self, piece: Turn) -> list[Turn]:
        """The retrievals whose documents or query stand in a model call's prompt, one for each query."""
        found: dict[str, Turn] = {}
        for part in self._retrieval_parts:
            if _fits(part, piece, self._patience):
                found[part.question] = part
        return list(found.values())

    def _once(self, turns: Sequence[Turn]) -> list[Turn]:
        """Each turn once, told by whoever tells most, where several dialects tell the same one."""
        kept: list[Turn] = []
        for turn in sorted(turns, key=_telling, reverse=True):
            fingerprint = _fingerprint(turn)
            if turn.question and turn.answer:
                text = f"{turn.question}\0{turn.answer}".encode(errors="surrogatepass")
                key = blake2b(text, digest_size=16).digest()
                others = self._recent.setdefault(key, [])
                self._recent.move_to_end(key)
                if any(fingerprint.is_twin(other) for other in others):
                    continue
                others.append(fingerprint)
                del others[:-_MOST_TWINS]
            kept.append(turn)
        while len(self._recent) > self._most:
            self._recent.popitem(last=False)
        return kept


@dataclass(frozen=True, slots=True)
class _TurnFingerprint:
    """What is remembered of a turn, without keeping its spans alive."""

    dialects: frozenset[str]
    service: str
    start: int
    end: int
    question: str

    def is_twin(self, other: _TurnFingerprint) -> bool:
        """Whether two turns with the same question and answer are one, seen by two instrumentors."""
        overlap = self.start <= other.end and other.start <= self.end
        return overlap and self.dialects != other.dialects

    def holds(self, service: str, moment: int) -> bool:
        """Whether a moment in a process lies within the turn."""
        return service == self.service and self.start <= moment <= self.end


def _fingerprint(turn: Turn) -> _TurnFingerprint:
    span = turn.root.span
    dialects = frozenset(node.parsed.dialect for node in turn.nodes if node.parsed)
    return _TurnFingerprint(dialects, span.service, span.start, span.end, turn.question[:_REMEMBERED_TEXT])


def _by_trace(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """The spans of each trace, every span once."""
    by_trace: dict[str, dict[str, Span]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, {}).setdefault(span.span_id, span)
    for found in by_trace.values():
        yield list(found.values())


def _candidates(tree: Node) -> tuple[list[Turn], list[Turn]]:
    """The turns below a root, and the pieces that may belong to one."""
    tops = [Turn.below(node) for top in tree.tops() for node in _parted(top)]
    whole = [turn for turn in tops if _whole(turn)]
    pieces = [turn for turn in tops if not _whole(turn)]
    if not tops:
        return [], [Turn.below(tree)]
    if whole:
        calls = [piece for piece in pieces if not piece.retrieves]
        return [_with(turn, calls) for turn in whole], [piece for piece in pieces if piece.retrieves]
    together = Turn.of(tree, pieces)
    if len(pieces) > 1 and _whole(together):
        return [together], []
    return [], pieces


def _parted(top: Node) -> list[Node]:
    """The turns' roots in a tree whose top is a mere bracket around several: a loop, a batch, a session."""
    if top.parsed is None or top.parsed.kind != "chain" or top.parsed.question or top.parsed.answer:
        return [top]
    inner = [node for child in top.children for node in child.tops()]
    asked = [
        node
        for node in inner
        if node.parsed
        and node.parsed.kind in ("chain", "agent", "turn")
        and node.parsed.question
        and _whole(Turn.below(node))
    ]
    return inner if len({node.parsed.question for node in asked if node.parsed}) > 1 else [top]


def _whole(turn: Turn) -> bool:
    """Whether both a retrieval and its answer, or the turn's end in an error, are in one piece."""
    if any(parsed.documents and parsed.answer for _, parsed in turn.seen("turn")):
        return True
    models = bool(turn.seen("llm"))
    found = find_contexts(turn)
    if not turn.retrieves and not turn.agentic:
        return bool(turn.answer) and bool(found.contexts) and not found.guessed
    if _formats(turn, found):
        return False
    return bool(turn.answer) or bool(failure(turn)) or (turn.root.parsed is not None and models)


def _formats(turn: Turn, found: Found) -> bool:
    """Whether this is a step that retrieved and formatted: what it came to is the context, not an answer."""
    if turn.seen("llm", "turn") or len(found.contexts) < 2:
        return False
    return all(context.text in turn.answer for context in found.contexts)


def _judgeable(turn: Turn, found: Found) -> bool:
    """Whether a record can come of it: a failed turn needs a question, any other one all three parts."""
    if failure(turn) and turn.question and (turn.retrieves or found.contexts):
        return True
    return bool(turn.question and found.contexts and turn.answer) and not _formats(turn, found)


def _fits(part: Turn, piece: Turn, patience: int) -> bool:
    """Whether a model call used what was retrieved: its prompt holds the documents, or at least the query."""
    span, after = part.root.span, piece.root.span
    if span.service != after.service or not 0 <= after.end - span.start <= patience + after.end - after.start:
        return False
    if after.end < span.end and span.trace_id != after.trace_id:
        return False
    found = find_contexts(part)
    if found.contexts:
        return any(context.in_prompt for context in mark_in_prompt(found.contexts, piece.prompts))
    query = " ".join(part.question.split())
    prompts = " ".join(" ".join(piece.prompts).split())
    return len(query.split()) >= _FEWEST_WORDS and query in prompts


def _with(turn: Turn, calls: Iterable[Turn]) -> Turn:
    """The turn with those model calls that were made on its behalf."""
    made = [call for call in calls if _made_by(call, turn)]
    return Turn.of(turn.root, [turn, *made]) if made else turn


def _made_by(call: Turn, turn: Turn) -> bool:
    """Whether a model call beside a turn was made while it ran, with the turn's content."""
    span, whole = call.root.span, turn.root.span
    if span.service != whole.service:
        return False
    if not whole.start <= span.start <= whole.end:
        return False
    passages = find_contexts(turn).contexts
    return any(c.in_prompt for c in mark_in_prompt(passages, call.prompts)) or any(
        turn.question and turn.question in text for text in call.prompts
    )


def _root(piece: Turn, parts: Sequence[Turn]) -> Node:
    """The span that stands for a joined turn: a chain's if one has it, else the model call that answered."""
    chained = [
        h.root
        for h in parts
        if h.root.parsed and h.root.parsed.kind in ("chain", "agent") and h.root.parsed.question
    ]
    return chained[0] if chained else piece.root


def _telling(turn: Turn) -> tuple[int, int]:
    found = find_contexts(turn)
    return sum(c.id is not None for c in found.contexts) + sum(
        c.score is not None for c in found.contexts
    ), len(found.contexts)
