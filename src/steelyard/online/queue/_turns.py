"""What a turn is on its way, what a queue stores of it, the ledger of all, and what users said of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from sys import getsizeof
from typing import Any, Literal

from steelyard._internal.bounded import BoundedDict
from steelyard._internal.typed import json_pieces, json_value
from steelyard.errors import SkipReason
from steelyard.record import Context, Record, record_from_dict, record_to_dict
from steelyard.recording import Draft
from steelyard.scores import Evaluation, evaluation_from_dict, evaluation_to_dict

FinalState = Literal["skipped", "evaluated", "dead", "abandoned", "spooled"]
"""What a pending turn can become. `spooled` hands it to the spool, which has a ledger of its own."""
_OVERHEAD = 500  # the objects around the texts of a turn or a context, in bytes
_LOOKED_AT = 5000  # weighing runs on the host's thread: of larger values the rest is estimated
_TEXT, _QUERY = attrgetter("text"), attrgetter("query")
_PLAIN = frozenset({str, int, float, bool, type(None)})
_ENTRIES: tuple[type[Any], ...] = (list, tuple, set, frozenset)
_SIZES: dict[type, Callable[[Any], int]] = {
    base: base.__sizeof__ for base in (str, int, float, bytes, dict, list, tuple, set, frozenset)
}
FEEDBACK = "feedback"
"""The metadata entry that holds what the user said about a turn."""
_REMEMBERED = 10_000
# Turns are kept with their texts, so their bytes are bounded as well.
_KEPT = 1_000
_KEPT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """The ledger at one moment."""

    seen: int
    """Turns handed to `submit`."""
    accepted: int
    """Turns that were not skipped."""
    pending: int
    """Accepted and not finished: queued, being judged, or being written."""
    evaluated: int
    """Finished: every metric is scored, not applicable or failed."""
    abandoned: int
    """Given up at exit because time ran out."""
    spooled: int
    """Handed to the spool, which accounts for them from there."""
    skipped: Mapping[str, int]
    """Not judged, by reason."""
    dead: Mapping[str, int]
    """Accepted but impossible to evaluate, by cause."""


class Ledger:
    """Counts turns as they move from one state to the next. Each total has a counter of its own.

    Nothing in a step calls a function of Python, where the handler of a signal would get in between two
    counts: a `Counter` does where it meets a reason for the first time.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.pending = 0
        self._plain: dict[str, int] = {"evaluated": 0, "abandoned": 0, "spooled": 0}
        self._skipped: dict[str, int] = defaultdict(int)
        self._dead: dict[str, int] = defaultdict(int)

    def accept(self) -> None:
        self.seen += 1
        self.pending += 1

    def skip(self, reason: str) -> None:
        self.seen += 1
        self._skipped[reason] += 1

    def settle(self, state: FinalState, reason: str = "", *, count: int = 1) -> None:
        """Pending turns have reached a final state.

        Turns that were given up while they were on their way may get there yet: they leave `abandoned` then.
        """
        if not count:
            return
        late = max(0, count - self.pending)
        if late > self._plain["abandoned"]:
            raise ValueError(f"{count} turns became {state!r} but only {self.pending} are pending")
        self.pending -= count - late
        self._plain["abandoned"] -= late
        if state == "skipped":
            self._skipped[reason] += count
        elif state == "dead":
            self._dead[reason] += count
        else:
            self._plain[state] += count

    def reopen(self, state: FinalState) -> None:
        """A turn that was evaluated, or skipped as `sampled_out`, is pending again."""
        counts, name = (self._skipped, "sampled_out") if state == "skipped" else (self._plain, state)
        if counts[name] < 1:
            raise ValueError(f"no turn has been {state}")
        counts[name] -= 1
        self.pending += 1

    def counts(self) -> Counts:
        return Counts(
            seen=self.seen,
            accepted=self.pending + sum(self._plain.values()) + sum(self._dead.values()),
            pending=self.pending,
            skipped={reason: n for reason, n in self._skipped.items() if n},
            dead=dict(self._dead),
            **self._plain,
        )


@dataclass(slots=True)
class Queued:
    """A turn in the inbox, as it was submitted."""

    turn: Record | Draft
    sampling_position: float | None
    """Its position in [0, 1), where sampling has needed it already."""
    size: int = 0
    """Roughly how many bytes it keeps alive; 0 until it was weighed."""
    requeued: bool = False
    """Whether it comes a second time, because a user disliked it."""
    taken_at: float = field(default_factory=time.time)
    """Unix time of its recording; a turn that does not say when it began is dated by it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What the screen said of a turn."""

    evaluation: Evaluation
    """The turn with the screen's Scores alone."""
    rate: float
    """The probability with which the judge is asked as well."""


@dataclass(frozen=True, slots=True)
class Selected:
    """A turn that was picked: masked, and counted against throttle and budget."""

    record: Record
    sampling_position: float
    rate: float
    """The probability with which it was picked; with a screen, before that moves it."""
    requeue: Queued | None = None
    """What goes through the inbox again if a user dislikes the turn; never stored."""
    screened: float = 0.0
    """The probability with which it was picked for the screen; 0 where there is none."""
    seen: Seen | None = None
    """What the screen said: a turn that waits for its judge is neither drawn nor paid for again."""


@dataclass(frozen=True, slots=True)
class Leased:
    """A selected turn that this process may judge."""

    seq: int
    """Its number in the queue."""
    lease: str
    """Who holds it."""
    turn: Selected
    postponed: int = 0
    """How often it was given back because the judge was out of reach."""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A finished turn whose result not every sink has yet; this process delivers it."""

    seq: int
    lease: str
    evaluation: Evaluation
    sink: str = ""
    """The one sink for which it was parked; empty if no sink is known to have it."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A turn that ends in this process, and why."""

    state: FinalState
    reason: SkipReason | str = ""
    """A SkipReason where it was skipped; a DeadCause or the name of an exception where it is dead."""
    requeue: Queued | None = None


def size_of(turn: Record | Draft) -> int:
    """Roughly how many bytes a turn keeps alive, wherever in it they are; a few microseconds for most."""
    if not isinstance(turn, Record):
        if (size := int(turn.size)) < 0:
            raise ValueError("a turn of less than no bytes")
        return size
    size = _OVERHEAD + _own_size(turn.question) + _own_size(turn.answer)
    for contexts in (turn.contexts, turn.retrieved, turn.reference_contexts):
        if contexts:
            size += _size_of_contexts(contexts)
    for stage in turn.stages:
        size += _OVERHEAD + _own_size(stage.query) + _size_of_contexts(stage.contexts)
    for text in (turn.standalone_question, turn.reference, turn.error):
        if text is not None:
            size += _own_size(text)
    for extra in (turn.tags, turn.metadata, turn.notes):
        size += _size_of_any(extra)
    return size


def _size_of_contexts(contexts: tuple[Context, ...]) -> int:
    # Of very many evenly spread ones: a million would hold up the turns behind them for half a second.
    step = 1 + len(contexts) // _LOOKED_AT
    some = contexts[::step]
    size = sum(map(_own_size, map(_TEXT, some)))
    size += sum([_own_size(query) for query in map(_QUERY, some) if query is not None])
    return size * step + _OVERHEAD * len(contexts)


def _size_of_any(value: object) -> int:
    """The size of nested data; only the kinds that have an end are looked into, and only so far."""
    if type(value) in (dict, tuple) and (flat := _size_of_flat(value)) is not None:
        return flat
    one: Any
    size, rest, known = 0, [value], 0
    while rest and known < _LOOKED_AT:
        known += 1
        one = rest.pop()
        size += _own_size(one)
        kind = type(one)
        if issubclass(kind, dict):
            rest.extend(dict.__iter__(one))
            rest.extend(dict.values(one))
        else:
            rest.extend(next((base.__iter__(one) for base in _ENTRIES if issubclass(kind, base)), ()))
    return size + size // max(1, known) * len(rest)


def _size_of_flat(value: Any) -> int | None:
    """What is flat, as most is, is added up without a loop of ours; None for what is nested or long."""
    if len(value) >= _LOOKED_AT or not _PLAIN.issuperset(map(type, value)):
        return None
    size = sum(map(getsizeof, value))
    if type(value) is not dict:
        return size
    values = value.values()
    return size + sum(map(getsizeof, values)) if _PLAIN.issuperset(map(type, values)) else None


def _own_size(value: object) -> int:
    """The size of one object, without what is in it.

    Whoever calls `flush` may weigh a turn: so a subclass of a built-in type is asked by that type's own
    method, and code of the application does not run.
    """
    kind = type(value)
    if kind in _PLAIN:
        return getsizeof(value)
    for base, measured in _SIZES.items():
        if issubclass(kind, base):
            return measured(value)
    return getsizeof(value, _OVERHEAD)


@dataclass(frozen=True, slots=True)
class Kept:
    """A turn that is finished, at a lower rate than the one for suspicious turns."""

    item: Queued
    state: FinalState


class Feedback:
    """What users said, by record id, and the latest turns that feedback could change; the oldest go first.

    Feedback mostly comes after the turn, when it has been judged or passed over. All turns that are disliked
    must have the same chance to be judged, or averages would lean: so one that was passed over is then taken
    up again, and one that was judged is judged again, both at the rate for suspicious turns.
    """

    def __init__(self) -> None:
        self._values: BoundedDict[str, Any] = BoundedDict(max_items=_REMEMBERED)
        self._kept: BoundedDict[str, Kept] = BoundedDict(
            max_items=_KEPT, max_weight=_KEPT_BYTES, weigh=lambda kept: kept.item.size
        )

    def add(self, record_id: str, value: Any) -> Kept | None:
        """Remember what was said; returns the turn if it is to be taken again."""
        self._values[record_id] = value
        return self._kept.pop(record_id, None) if self.disliked(record_id) else None

    def keep(self, item: Queued, state: FinalState) -> Kept | None:
        """Keep a turn for a while; returns it at once if it was disliked in the meantime."""
        kept, record_id = Kept(item, state), item.turn.id
        if self.disliked(record_id):
            return kept
        self._kept[record_id] = kept
        # The user may have spoken in another thread, before the turn was there to be found.
        return self._kept.pop(record_id, None) if self.disliked(record_id) else None

    def disliked(self, record_id: str) -> bool:
        """Whether the user said something bad: False, or a number of 0 or less."""
        value = self._values.get(record_id, 1)
        return isinstance(value, (int, float)) and value <= 0

    def known(self, record_id: str) -> Mapping[str, Any]:
        """What was said, as an entry for the metadata."""
        return {FEEDBACK: self._values[record_id]} if record_id in self._values else {}


def turn_to_json(turn: Selected) -> bytes | None:
    """A turn as one line of JSON; None where it cannot be written down."""
    data: dict[str, Any] = {
        "sampling_position": turn.sampling_position,
        "rate": turn.rate,
        "screened": turn.screened,
    }
    try:
        if turn.seen is not None:
            data["seen"] = seen_to_dict(turn.seen)
        # A lone surrogate somewhere cannot be encoded: it would fail in the store, and take others along.
        return _encoded({**data, "record": record_to_dict(turn.record)})
    except Exception:  # noqa: BLE001 - a hostile record may raise anything; the others are stored
        return None


def turn_from_json(body: str | bytes) -> Selected:
    """The turn again. Raises whatever a damaged text makes it raise."""
    data = json_value(body)
    # Schema 1 called it `place`; turns that waited through an update still do.
    position = data["sampling_position"] if "sampling_position" in data else data["place"]
    record = record_from_dict(data["record"])
    seen = seen_from_dict(data["seen"], record) if "seen" in data else None
    return Selected(record, position, data["rate"], screened=data.get("screened", 0.0), seen=seen)


def seen_to_dict(seen: Seen) -> dict[str, Any]:
    """What the screen said, without the Record, which lies beside it."""
    return {"rate": seen.rate, "evaluation": evaluation_to_dict(replace(seen.evaluation, record=None))}


def seen_from_dict(data: Mapping[str, Any], record: Record) -> Seen:
    """What the screen said of this Record. Raises whatever damaged data make it raise."""
    evaluation = evaluation_from_dict(data["evaluation"])
    return Seen(evaluation=replace(evaluation, record=record), rate=data["rate"])


def result_to_json(evaluation: Evaluation) -> bytes:
    return _encoded(evaluation_to_dict(evaluation))


def _encoded(data: object) -> bytes:
    """JSON in UTF-8, encoded piece by piece, so that other threads run while a long turn is written."""
    return b"".join(piece.encode() for piece in json_pieces(data))
