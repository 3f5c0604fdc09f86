"""The turns that are under way: which span belongs to which turn, and when a turn is over.

This is the hot path. Every span and event costs a few dictionary operations and keeps references only; the
Record is built later, from the steps, by `steelyard_llamaindex._build`. Whatever never ends is evicted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

from steelyard.record import Record, Status, TraceRef, text_of
from steelyard.recording import Draft, current_trace, is_unrecorded
from steelyard_llamaindex._kinds import Kind, stream_of

__all__ = ["Place", "Receiver", "Step", "Turn", "Turns", "current_place"]

_logger = logging.getLogger("steelyard.llamaindex")

_ROOTS = frozenset({"query", "chat", "agent", "workflow"})
_RUNS = frozenset({"agent", "workflow"})
_MOST_STEPS = 1000


class Receiver(Protocol):
    """Where finished turns go: a `steelyard.online.Monitor`, or anything that can take one."""

    def submit(self, turn: Record | Draft, /) -> object:
        """Take a turn; must be quick and must not raise."""
        ...


@dataclass(slots=True, eq=False)
class Step:
    """One part of a turn that matters for its record."""

    id: str
    """The id of its span."""
    kind: Kind
    """What it is."""
    parent: Step | None
    """The step it was called from; None for the root."""
    name: str
    """The class of what was called."""
    asked: Any = None
    """What it was called with: a string, a QueryBundle, a message, a start event, a prompt."""
    result: Any = None
    """What it returned; of engines inside a turn, only the nodes."""
    began: float = 0.0
    """When it began, by the performance counter."""
    seconds: float | None = None
    """How long it took."""


@dataclass(slots=True, eq=False)
class Turn:
    """One RAG turn under way, or over and waiting to become a Record."""

    id: str
    """The id of its root span."""
    root: Step
    """Its first step."""
    trace: TraceRef | None
    """The span of the application that was current when it began."""
    tags: Mapping[str, Any]
    """What the user set with `instrument_tags`."""
    started: float
    """When it began, in Unix time."""
    steps: list[Step] = field(default_factory=list)
    """Its steps, in order of beginning."""
    prompts: list[Any] = field(default_factory=list)
    """What language models were sent."""
    pieces: list[str] = field(default_factory=list)
    """Pieces of a streamed answer."""
    said: Any = None
    """What a language model replied last; the answer of a turn that has no result of its own."""
    failure: str | None = None
    """The first step that raised, whether or not the run went on."""
    status: Status = "ok"
    """How it ended, or will if nothing happens."""
    error: str | None = None
    """What ended it, where that was an error."""
    generation: float = 0.0
    """Seconds spent in language models."""
    streaming: bool = False
    """Whether the answer comes after the root has returned."""
    returned: bool = False
    """Whether the root of a streamed chat has returned; the turn ends with the later of root and writer."""
    written: bool = False
    """Whether the writer of a streamed chat has ended."""
    done: bool = False
    """Whether it is over and handed over."""
    open: set[str] = field(default_factory=set)
    """Ids of its spans that have not ended."""


Place = tuple[Turn, Step]

current_place: ContextVar[Place | None] = ContextVar("steelyard_llamaindex_place", default=None)
"""Where spans without a parent of their own belong: a `record` block, or a stream that is being read."""


class Turns:
    """Follows spans into turns and hands over each turn when it ends.

    Args:
        receiver: Takes the finished turns.
        draft: Makes what is handed over.
        defer: Told of the result of a root; says whether its answer is still to come, as a stream.
        ttl: Seconds after which an open turn is given up, as `interrupted`.
        most: How many turns may be open before the oldest is given up.
    """

    def __init__(
        self,
        receiver: Receiver,
        *,
        draft: Callable[[Turn], Draft],
        defer: Callable[[Turns, Turn, Any], bool],
        ttl: float,
        most: int,
    ) -> None:
        self._receiver = receiver
        self._draft = draft
        self._defer = defer
        self._ttl = ttl
        self._most = most
        self.places: dict[str, Place] = {}
        """Where each open span belongs; a span of no interest has the place of its parent."""
        self._open: dict[str, Turn] = {}
        self._lock = threading.Lock()
        self._complained: set[tuple[str, type]] = set()

    @property
    def left(self) -> list[str]:
        """Ids of the spans and turns that are being held; none when nothing runs."""
        return [*self.places, *self._open]

    def enter(self, id_: str, parent_id: str | None, kind: Kind, asked: Any, name: str, tags: Any) -> None:
        """A span began that may matter to a record."""
        if is_unrecorded():
            return
        place = self.places.get(parent_id) if parent_id is not None else None
        if place is None:
            place = current_place.get()
        if place is None or place[0].done:
            if kind in _ROOTS:
                self.open(id_, kind, asked=asked, name=name, tags=tags)
            return
        turn, parent = place
        # An asynchronous LLM calls its own synchronous method, and a workflow inside a turn is part of it.
        if kind not in _RUNS and not (kind == "llm" == parent.kind):
            place = (turn, self._step(turn, Step(id_, kind, parent, name, asked, began=perf_counter())))
        self.places[id_] = place
        turn.open.add(id_)

    def _step(self, turn: Turn, step: Step) -> Step:
        if len(turn.steps) < _MOST_STEPS:
            turn.steps.append(step)
        if step.kind == "writer":
            turn.streaming = True
            turn.root.result = step.asked
        return step

    def open(self, id_: str, kind: Kind, *, asked: Any, name: str, tags: Any) -> Turn:
        """Begin a turn."""
        self._evict()
        step = Step(id_, kind, None, name, asked, began=perf_counter())
        trace = current_trace(run_id=id_, framework="llamaindex")
        turn = Turn(id_, step, trace, tags or {}, time.time())
        turn.steps.append(step)
        turn.open.add(id_)
        self.places[id_] = (turn, step)
        self._open[id_] = turn
        return turn

    def follow(self, id_: str, parent_id: str | None) -> None:
        """A span of no interest began."""
        place = self.places.get(parent_id)  # type: ignore[arg-type]
        if place is not None:
            self.places[id_] = place
            place[0].open.add(id_)

    def leave(self, id_: str, result: Any) -> None:
        """A span ended well."""
        place = self.places.pop(id_, None)
        if place is None:
            return
        turn, step = place
        turn.open.discard(id_)
        if step.id == id_:
            self._leave(turn, step, result)

    def _leave(self, turn: Turn, step: Step, result: Any) -> None:
        step.seconds = perf_counter() - step.began
        if step is turn.root:
            self._leave_root(turn, result)
        elif step.kind == "llm":
            turn.generation += 0.0 if turn.streaming else step.seconds
            if not isinstance(result, (Generator, AsyncGenerator)):
                turn.said = result
        elif step.kind == "writer":
            turn.generation += step.seconds
            turn.written = True
            if turn.returned:
                self.finish(turn)
        else:
            # A response may carry the very stream that will hold this turn: keep its nodes, not itself.
            step.result = getattr(result, "source_nodes", None) if step.kind in _ROOTS else result
            cls: Any = type(result)
            if turn.root.kind == "manual" and step.kind in _ROOTS and stream_of(cls) is None:
                turn.said = result

    def _leave_root(self, turn: Turn, result: Any) -> None:
        try:
            if self._defer(self, turn, result):
                return
            turn.root.result = result
        except Exception as error:  # noqa: BLE001 - a response may be an object of the application's own
            self.complain("stream", error)
        self.finish(turn)

    def keep(self, turn: Turn) -> None:
        """Let the writer of a streamed chat find its turn, whose root has returned."""
        turn.open.add(turn.id)
        self.places[turn.id] = (turn, turn.root)
        turn.returned = True
        if turn.written:
            self.finish(turn)

    def release(self, turn: Turn) -> None:
        """Forget a turn; from now on it lives as long as the stream that holds it."""
        self._open.pop(turn.id, None)
        for id_ in list(turn.open):
            self.places.pop(id_, None)

    def drop(self, id_: str, error: BaseException | None) -> None:
        """A span ended with an exception."""
        place = self.places.pop(id_, None)
        if place is None:
            return
        turn, step = place
        turn.open.discard(id_)
        if turn.failure is None and error is not None:
            turn.failure = _shown(error)
        if step.id != id_:
            return
        if step is turn.root or step.kind == "writer":
            self.fail(turn, error)

    def fail(self, turn: Turn, error: BaseException | None) -> None:
        """End a turn that an exception ended."""
        if isinstance(error, Exception):
            turn.status, turn.error = "error", _shown(error)
        elif error is None and turn.failure is not None:
            turn.status, turn.error = "error", turn.failure
        else:
            turn.status = "cancelled"
        self.finish(turn)

    def cancel(self, span_id: str | None) -> None:
        """A workflow was cancelled; its span will end as if all were well."""
        place = self.places.get(span_id) if span_id is not None else None
        if place is not None and place[1] is place[0].root:
            place[0].status = "cancelled"

    def place(self, span_id: str | None) -> Place | None:
        """Where an event of this span belongs."""
        place = self.places.get(span_id) if span_id is not None else None
        if place is not None or is_unrecorded():
            return place
        return current_place.get()

    def finish(self, turn: Turn) -> None:
        """End a turn, once, and hand it over."""
        with self._lock:
            if turn.done:
                return
            turn.done = True
        self.release(turn)
        if turn.root.seconds is None or turn.streaming:
            turn.root.seconds = perf_counter() - turn.root.began
        try:
            self._receiver.submit(self._draft(turn))
        except Exception as error:  # noqa: BLE001 - whatever receives turns, the application goes on
            self.complain("submit", error)

    def _evict(self) -> None:
        """Give up turns that are too old or too many; they are the first in order of beginning."""
        horizon = time.time() - self._ttl
        while self._open:
            try:
                turn = next(iter(self._open.values()))
            except (StopIteration, RuntimeError):  # another thread was quicker
                return
            if turn.started > horizon and len(self._open) < self._most:
                return
            turn.status = "interrupted"
            self.finish(turn)

    def complain(self, doing: str, error: BaseException) -> None:
        """Say, once for each kind, that recording failed: the dispatcher swallows what handlers raise."""
        kind = (doing, type(error))
        if kind not in self._complained:
            self._complained.add(kind)
            _logger.warning(
                "recording a LlamaIndex turn failed at %s with %s; the application goes on, the turn may be "
                "missing or incomplete, and this is said once",
                doing,
                type(error).__name__,
                exc_info=_logger.isEnabledFor(logging.DEBUG),
            )


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {text_of(error)}"
