"""What a turn is on its way: queued, selected, leased, undelivered, closed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from steelyard.errors import SkipReason
from steelyard.online.queue._ledger import FinalState
from steelyard.record import Context, Record
from steelyard.recording import Draft
from steelyard.scores import Evaluation

_OVERHEAD = 500
_SAMPLED = 50


@dataclass(slots=True)
class Queued:
    """A turn in the inbox, as it was submitted."""

    turn: Record | Draft
    sampling_position: float | None
    """Its position in [0, 1), where sampling has needed it already."""
    size: int
    """Roughly how many bytes it keeps alive."""
    requeued: bool = False
    """Whether it comes a second time, because a user disliked it."""


@dataclass(frozen=True, slots=True)
class Selected:
    """A turn that was picked: masked, and counted against throttle and budget."""

    record: Record
    sampling_position: float
    rate: float
    """The probability with which it was picked."""
    requeue: Queued | None = None
    """What goes through the inbox again if a user dislikes the turn; never stored."""


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
    """A finished turn whose result the sinks do not have yet; this process delivers it."""

    seq: int
    lease: str
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class Closed:
    """A turn that ends in this process, and why."""

    state: FinalState
    reason: SkipReason | str = ""
    """A SkipReason where it was skipped; a DeadCause or the name of an exception where it is dead."""
    requeue: Queued | None = None


def size_of(turn: Record | Draft) -> int:
    """Roughly how many bytes a turn keeps alive, in a few microseconds whatever its size."""
    if not isinstance(turn, Record):
        return turn.size
    size = _OVERHEAD + len(turn.question) + len(turn.answer)
    for contexts in (turn.contexts, turn.retrieved):
        if contexts:
            size += _size_of_contexts(contexts)
    return size


def _size_of_contexts(contexts: tuple[Context, ...]) -> int:
    count, size = len(contexts), 0
    for context in contexts if count <= _SAMPLED else islice(contexts, _SAMPLED):
        size += len(context.text)
    return _OVERHEAD * count + (size if count <= _SAMPLED else size * count // _SAMPLED)
