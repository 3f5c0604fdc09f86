"""Finding the RAG turns in the spans of some traces.

Two things make it harder than reading each trace by itself. Where a root never ended, or an instrumentor
starts a new trace halfway, the pieces of one turn have no root in common: they are joined where an identity
says that they belong together (`_joining`), never because their texts are alike. And two instrumentors that
watch the same application tell the same turn twice.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from steelyard._internal.bounded import BoundedDict
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard.record import Record
from steelyard_opentelemetry._build import is_helper, is_judgeable, is_untold, record_of
from steelyard_opentelemetry._diagnosis import UNTOLD, NoRecord, diagnose
from steelyard_opentelemetry._evidence import evidence_of, follow
from steelyard_opentelemetry._grouping import Candidates, candidates_in
from steelyard_opentelemetry._joining import (
    WaitingPieces,
    is_before,
    is_certain,
    replied_to,
    root_of,
    used_by,
)
from steelyard_opentelemetry._remembered import EarlierCalls, TurnDeduplicator, is_call, turn_key
from steelyard_opentelemetry._span import Span
from steelyard_opentelemetry._turn import Turn

_log = SafeLogger("steelyard.opentelemetry")
_NANO = 1_000_000_000
# So many late spans can still be told from new turns; a trace beyond them counts as new.
_REMEMBERED_TRACES, _REMEMBERED_SPANS = 1024, 4096
_MOST_TEXT = 16_000_000
"""Characters of the pieces of one kind that are kept: a prompt may be of megabytes."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came of some spans."""

    records: list[Record] = field(default_factory=list)
    """One for each RAG turn."""
    diagnoses: list[NoRecord] = field(default_factory=list)
    """Why the rest gave none."""
    duplicates: int = 0
    """Turns told a second time, by another instrumentor."""


def read(spans: Iterable[Span]) -> Extraction:
    """Every turn in some spans, all at once."""
    reader = TurnExtractor()
    first = reader.read(spans)
    # At the end nothing more can come, so what waits is decided now.
    last = reader.close()
    records = sorted([*first.records, *last.records], key=_started)
    return Extraction(records, [*first.diagnoses, *last.diagnoses], first.duplicates)


def _started(record: Record) -> float:
    return (record.timings.started_at if record.timings else None) or 0.0


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
        self._retrieval_parts = WaitingPieces()
        self._calls = WaitingPieces()
        self._held = WaitingPieces()
        self._joined = WaitingPieces()
        """Turns whose answers a call by itself may join to one: of files, of chapters, of indexes."""
        self._told: BoundedDict[str, dict[str, None]] = BoundedDict(max_items=_REMEMBERED_TRACES)
        self._earlier = EarlierCalls()
        self._told_before = TurnDeduplicator()
        self._warn_once = WarnOnce(_log)
        self.awaits: Callable[[Span], bool] = lambda span: False
        """Whether a turn that a span may belong to, although nothing links them, is still going on.

        A model call by itself waits for its end, as long as a retrieval waits for its model call.
        """
        self.errors = 0
        """Traces and turns that could not be read."""
        self.late = 0
        """Spans that came after their turn had been recorded, and tell nothing new."""

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        """One trace that cannot be read must not cost the others."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever an instrumentor wrote
            self.errors += 1
            # Its message may quote the turn.
            message = "a trace could not be read (%s); more are only counted"
            self._warn_once("unreadable", message, error_place(error))

    @property
    def waiting(self) -> int:
        """How many pieces still wait for what they belong to."""
        return sum(map(len, self._waiting))

    def holds(self, trace_id: str) -> bool:
        """Whether a piece of a trace still waits for what it belongs to."""
        return any(waiting.holds(trace_id) for waiting in self._waiting)

    @property
    def _waiting(self) -> tuple[WaitingPieces, ...]:
        return self._retrieval_parts, self._calls, self._held

    def read(self, spans: Iterable[Span]) -> Extraction:
        """The turns in the spans of some complete traces."""
        return self.extract([self.candidates(group) for group in _by_trace(spans)])

    def candidates(self, spans: Iterable[Span]) -> Candidates:
        """What some spans of one trace hold; nothing where they cannot be read."""
        with self._harmless():
            return candidates_in(spans)
        return Candidates()

    def extract(self, candidates: Iterable[Candidates]) -> Extraction:
        """The turns in some traces that were read, joined with what has waited for them."""
        found: list[Turn] = []
        lone: list[Turn] = []
        for each in candidates:
            # Before anything is decided, since a turn may be built upon a call of the same batch.
            self._earlier.remember((*each.whole, *each.pieces, *each.aside))
            for turn in each.whole:
                if is_call(turn) and self.awaits(turn.root.span):
                    self._held.add(turn)
                else:
                    found.append(turn)
            lone.extend(each.pieces)
        found, joined, left = self._join(found, lone)
        reading = Extraction()
        for piece in left:
            if piece.prompts and piece.answer:
                self._calls.add(piece)
            else:
                self._leftover(piece, reading)
        for turn in (*found, *joined):
            follow(turn, self._earlier.of_service(turn))
        again = 0
        for turn in _in_order((*found, *joined)):
            with self._harmless():
                whole = self._with_calls(turn)
                if self._told_before.hold(whole):
                    again += 1
                else:
                    self._settle(whole, reading)
        self._earlier.forget()
        return Extraction(sorted(reading.records, key=_started), reading.diagnoses, again)

    def overdue(self, now: float) -> Extraction:
        """What has waited long enough.

        Args:
            now: Unix time in nanoseconds.
        """
        reading = Extraction()
        for waiting, patience in (
            (self._retrieval_parts, self._patience),
            (self._calls, self._patience // 8),
            (self._held, 0),
        ):
            while (oldest := waiting.oldest) is not None:
                age = now - oldest.root.span.end
                is_due = age > patience and (age > self._patience or not self.awaits(oldest.root.span))
                if not (is_due or self._is_full(waiting)):
                    break
                self._leftover(waiting.take(oldest), reading)
        while (oldest := self._joined.oldest) is not None and (
            now - oldest.root.span.end > self._patience or self._is_full(self._joined)
        ):
            self._joined.take(oldest)
        return reading

    def _is_full(self, waiting: WaitingPieces) -> bool:
        return len(waiting) > self._most or waiting.size > _MOST_TEXT

    def close(self) -> Extraction:
        """Give up what is still waiting."""
        return self.overdue(math.inf)

    def _with_calls(self, turn: Turn) -> Turn:
        """The turn with the model calls that were made on its behalf, but stand in traces of their own."""
        made = [self._calls.take(call) for call in self._calls.related(turn) if is_certain(call, turn)]
        return Turn.of(turn.root, [turn, *made]) if made else turn

    def _settle(self, turn: Turn, reading: Extraction) -> None:
        """A record, or the reason why there is none."""
        found = evidence_of(turn)
        reason = None if is_judgeable(turn, found) else diagnose(turn, found)
        # What is lost may come with a switch; of what was never told the record says so.
        if reason is not None and not (reason.cause in UNTOLD and is_untold(turn, found)):
            reading.diagnoses.append(reason)
            return
        record = record_of(turn, found)
        said = (reason.reason,) if reason is not None else ()
        notes = (*record.notes, *said, *self._earlier.notes_on(turn, found))
        reading.records.append(replace(record, notes=notes))
        self._remember(turn)
        self._told_before.remember(turn)

    def _leftover(self, turn: Turn, reading: Extraction) -> None:
        """A piece that belongs to nothing: a turn of its own if its prompt holds passages, else a reason."""
        span = turn.root.span
        told = self._told.get(span.trace_id) or ()
        if not (told or turn.parsed):
            reading.diagnoses.append(diagnose(turn))
        elif span.parent_id in told or self._told_before.hold(turn):
            self.late += len(turn.nodes)
        elif turn.answer or turn.retrieves or not told:
            self._settle(turn, reading)
        else:
            self.late += len(turn.nodes)

    def _remember(self, turn: Turn) -> None:
        for trace_id, nodes in itertools.groupby(turn.nodes, key=lambda node: node.span.trace_id):
            # One of these for every trace: a plain dict takes less memory than a BoundedDict.
            told = self._told[trace_id] = self._told.get(trace_id, {})
            told.update((node.span.span_id, None) for node in nodes)
            while len(told) > _REMEMBERED_SPANS:
                del told[next(iter(told))]

    def _join(
        self, whole: Sequence[Turn], pieces: Sequence[Turn]
    ) -> tuple[list[Turn], list[Turn], list[Turn]]:
        """Join retrievals with the turns and model calls that used them.

        Returns:
            The turns that used none but their own, those that were joined, and the pieces that are left over.
        """
        alone: list[Turn] = []
        joined: list[Turn] = []
        left: list[Turn] = []
        is_whole = {id(turn) for turn in whole}
        # Retrievals come before the calls that use them, whatever order their spans ended in.
        for piece in sorted((*whole, *pieces), key=lambda piece: piece.root.span.start):
            if piece.retrieves and id(piece) not in is_whole:
                self._retrieval_parts.add(piece)
                continue
            if parts := self._retrieval_parts_of(piece):
                for part in parts:
                    self._retrieval_parts.take(part)
                root = piece.root if id(piece) in is_whole else root_of(piece, parts)
                joined.append(Turn.of(root, [*parts, piece]))
                self._joined.add(joined[-1])
            elif answered := self._answered_in_parts(piece):
                # One turn, whether or not what it came to is told.
                joined = [one for one in joined if one not in answered]
                joined.append(Turn.of(piece.root, [*answered, piece]))
            else:
                (alone if id(piece) in is_whole else left).append(piece)
        return alone, joined, left

    def _retrieval_parts_of(self, piece: Turn) -> list[Turn]:
        """The retrievals that belong to a model call, one for each query.

        An explicit link is enough. A trace or a session may hold several turns, so that the prompt has to
        hold the documents too, or at least the query.
        """
        related = _related(self._retrieval_parts, piece)
        certain = [part for part in related if is_certain(part, piece)]
        if certain:
            return certain
        # Without a link the texts must say it: two users may ask at the same time.
        timely = [part for part in related if is_before(part, piece, self._patience)]
        found = {part.question: part for part in used_by(timely, piece)}
        return list(found.values())

    def _answered_in_parts(self, piece: Turn) -> list[Turn]:
        """The turns that were asked the same, if a model call's prompt shows what several of them replied."""
        related = _related(self._joined, piece)
        return replied_to([one for one in related if is_before(one, piece, self._patience)], piece)


def _related(waiting: WaitingPieces, piece: Turn) -> list[Turn]:
    """The pieces that a model call may belong to, if it neither looked anything up nor grades or routes."""
    is_able = piece.prompts and not piece.retrieves and not is_helper(piece)
    return waiting.related(piece) if is_able else []


def _by_trace(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """The spans of each trace, every span once."""
    by_trace: dict[str, dict[str, Span]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, {}).setdefault(span.span_id, span)
    for found in by_trace.values():
        yield list(found.values())


def _in_order(turns: Sequence[Turn]) -> list[Turn]:
    """The turns as they are settled: of those that tell the same, who tells most of it first.

    Those with a twin in their trace go before the others: of two users' turns with the same words each has
    its own. Lone calls come last: they may have been made on behalf of a turn that is settled before.
    """
    words = [(turn.root.span.trace_id, turn_key(turn)) for turn in turns]
    count = Counter(words)

    def telling(at: int) -> tuple[bool, bool, int, int, bool, int]:
        turn = turns[at]
        found = evidence_of(turn).contexts
        marks = sum(one.id is not None for one in found) + sum(one.score is not None for one in found)
        shows = any(call.prompts for call in turn.calls)
        lasted = turn.root.span.end - turn.root.span.start
        return is_call(turn), count[words[at]] < 2, -marks, -len(found), not shows, -lasted

    return [turns[at] for at in sorted(range(len(turns)), key=telling)]
