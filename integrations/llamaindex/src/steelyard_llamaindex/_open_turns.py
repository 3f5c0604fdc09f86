"""The turns that are under way: which span belongs to which turn, and when a turn is over.

This is the hot path. Every span and event costs a few dictionary operations and keeps references only; the
Record is built later, from the steps, by `building._build`. Whatever never ends is evicted.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from time import perf_counter
from typing import Any

from steelyard._internal.forks import ForkLock
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.text import error_place
from steelyard.record import text_of
from steelyard.recording import Draft, TurnTarget, is_unrecorded
from steelyard_llamaindex._extract import texts_of
from steelyard_llamaindex._kinds import Kind, bases_of, is_asked_by_evaluator, stream_of
from steelyard_llamaindex._turn import (
    Learnt,
    LiveStep,
    Place,
    Predecessor,
    RootSpan,
    Sessions,
    Turn,
    current_place,
    follow_latest,
    loose_retrievals,
    only_retrieved,
    precede,
    send,
)

_logger = SafeLogger("steelyard.llamaindex")

# What the user calls; everything else is below one of these, or a call by itself.
_ROOTS = frozenset({"query", "chat", "agent", "workflow"})
_PARTS = frozenset({"agent", "workflow", "synthesis"})
_OPENING = _ROOTS | {"retrieve", "llm", "synthesis"}
# An agent in a loop would otherwise keep every step that it ever made.
_MOST_STEPS = 1000
# A task that searches again and again and never asks a model keeps only the last ones.
_MOST_LOOSE = 8
# What ran in threads that know nothing of a turn, of all threads together.
_MOST_STRAYS = 32


class OpenTurns:
    """Follows spans into turns and hands over each turn when it ends.

    Args:
        target: Takes the finished turns.
        draft: Makes what is handed over.
        defer: Told of the result of a root; says whether its answer is still to come, as a stream.
        ttl: Seconds after which an open turn is given up, as `interrupted`.
        most: How many turns may be open before the oldest is given up.
    """

    def __init__(
        self,
        target: TurnTarget,
        *,
        draft: Callable[[Turn], Draft],
        defer: Callable[[OpenTurns, Turn, Any], bool],
        ttl: float,
        most: int,
    ) -> None:
        self._submit = target.submit
        self._draft = draft
        self._defer = defer
        self._ttl = ttl
        self._most = most
        self.places: dict[str, Place] = {}
        """Where each open span belongs; a span of no interest has the place of its parent."""
        self._open: dict[str, Turn] = {}
        self.streams: dict[str, Turn] = {}
        """Model calls that no run holds and whose replies are being streamed."""
        self._lock = ForkLock()
        # Tells this object's retrievals from those of another one in the same context.
        self._mark = object()
        self._learnt = Learnt()
        self._sessions = Sessions()
        self._strays: deque[LiveStep] = deque(maxlen=_MOST_STRAYS)
        self._replied: deque[Predecessor] = deque(maxlen=_MOST_STRAYS)
        self._warn_once = WarnOnce(_logger)

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
            # A span without a parent may run in a task that the user's code started.
            place = current_place.get()
        if place is None or place[0].done:
            self._begin(id_, kind, asked, name, tags)
            return
        turn, parent = place
        # A model's methods call each other, and tools to fill in forms; a workflow in a turn is part of it.
        if kind not in _PARTS and parent.kind != "llm":
            place = (turn, self._step(turn, LiveStep(id_, kind, parent, name, asked, began=perf_counter())))
            _ask(*place)
        elif kind in _ROOTS and len(turn.tasks) < _MOST_STEPS:
            turn.tasks.append(asked)
        self.places[id_] = place
        turn.open.add(id_)

    def _begin(self, id_: str, kind: Kind, asked: Any, name: str, tags: Any) -> None:
        """Open a turn if this may be the root of one, or a call that one may be built upon."""
        if kind not in _OPENING:
            return
        turn = self.open(id_, kind, asked=asked, name=name, tags=tags)
        turn.checks = kind in ("query", "llm") and is_asked_by_evaluator()
        if kind != "retrieve":
            follow_latest(turn, self._mark)

    def _step(self, turn: Turn, step: LiveStep) -> LiveStep:
        if len(turn.steps) < _MOST_STEPS:
            turn.steps.append(step)
        if step.kind == "writer":
            turn.streaming = True
            turn.root.result = step.asked
        return step

    def open(self, id_: str, kind: Kind, *, asked: Any, name: str, tags: Any) -> Turn:
        """Begin a turn."""
        self._evict()
        step = LiveStep(id_, kind, None, name, asked, began=perf_counter())
        turn = Turn(id_, step, RootSpan(id_), tags or {}, time.time(), learnt=self._learnt)
        turn.loose = () if kind == "retrieve" else self._loose()
        turn.steps.append(step)
        turn.open.add(id_)
        self.places[id_] = (turn, step)
        self._open[id_] = turn
        return turn

    def name_session(self, id_: str, session: str | None, is_own: bool) -> None:
        """Tell a turn which conversation it belongs to; the outermost engine's memory says it."""
        turn = self._open.get(id_)
        if turn is not None and session and self._sessions.names(session, is_own=is_own):
            turn.session = session

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
            _ask(turn, step)
            self._leave(turn, step, result)
        elif "Event" in bases_of(result) and len(turn.passed) < _MOST_STEPS:
            turn.passed.append((perf_counter(), result, False))

    def fill(self, span_id: str | None, variables: Any) -> None:
        """A template was filled in."""
        place = self.place(span_id)
        if place is not None and variables and len(place[0].passed) < _MOST_STEPS:
            place[0].passed.append((perf_counter(), variables, True))

    def _leave(self, turn: Turn, step: LiveStep, result: Any) -> None:
        step.seconds = perf_counter() - step.began
        if step is turn.root:
            self._leave_root(turn, result)
        elif step.kind == "llm":
            turn.generation += 0.0 if turn.streaming else step.seconds
            if isinstance(result, (Generator, AsyncGenerator)):
                # The reply is not here but in the generator, so that the step stays open for the event.
                # What it replies is told by an event of this span, at the end of the stream.
                self.places[step.id] = (turn, step)
                turn.open.add(step.id)
            else:
                step.result = turn.said = result
        elif step.kind == "writer":
            turn.generation += step.seconds
            turn.written = True
            if turn.returned:
                self.finish(turn)
        else:
            is_stream = step.kind in _ROOTS and stream_of(result) is not None
            # A response may carry the very stream that will hold this turn: keep its nodes, not itself.
            step.result = getattr(result, "source_nodes", None) if is_stream else result
            if turn.root.kind == "manual" and step.kind in _ROOTS and not is_stream:
                turn.said = result

    def _leave_root(self, turn: Turn, result: Any) -> None:
        if turn.root.kind == "retrieve" or only_retrieved(turn, result):
            turn.root.result = result
            loose_retrievals.set((self._mark, (*self._loose()[1 - _MOST_LOOSE :], turn.root)))
            self._strays.append(turn.root)
        if turn.root.kind == "retrieve":
            self.finish(turn)
            return
        try:
            if self._defer(self, turn, result):
                return
            turn.root.result = result
        except Exception as error:  # noqa: BLE001 - a response may be an object of the application's own
            self.complain("stream", error)
        self.finish(turn)

    def end_stream(self, turn: Turn) -> None:
        """A model's stream ends before the model does; one of which nothing was read is no answer."""
        turn.root.result = turn.said
        if turn.said is None:
            turn.done = True
            self.release(turn)
            return
        self.finish(turn)

    def _loose(self) -> tuple[LiveStep, ...]:
        mark, steps = loose_retrievals.get()
        return steps if mark is self._mark else ()

    def ask(self, place: Place, prompt: Any) -> None:
        """A language model was sent something."""
        turn, step = place
        # The synchronous method that an asynchronous one calls is the same step, and sends the same prompt.
        if step.kind == "llm":
            if step.prompted:
                return
            step.prompted = True
            if step is turn.root and self._is_streamed(prompt):
                turn.done = True
                self.release(turn)
                return
        send(turn, step, prompt, tuple(self._replied)[-_MOST_LOOSE:])

    def _is_streamed(self, prompt: Any) -> bool:
        """Whether a stream that begins to be read sends this: some models then call a method of their own."""
        waiting = (turn.calls[0].asked for turn in list(self.streams.values()) if turn.said is None)
        return any(one is prompt or (not isinstance(one, str) and _is_same(one, prompt)) for one in waiting)

    def reply(self, span_id: str | None, prompt: Any, response: Any) -> None:
        """A language model replied; of a stream, at its end."""
        place = self.place(span_id)
        if place is None:
            return
        turn, _ = place
        if turn.root.kind == "manual":
            turn.said = response
        # The latest call first: the same prompt may have been sent twice.
        for call in reversed(turn.calls):
            if call.reply is None and _is_same(call.asked, prompt):
                call.reply, call.ended = response, perf_counter()
                break
        if turn.id in self.streams:
            turn.root.result = response
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
        self.streams.pop(turn.id, None)
        turn.stream = None
        for id_ in list(turn.open):
            self.places.pop(id_, None)

    def drop(self, id_: str, error: BaseException | None) -> None:
        """A span ended with an exception."""
        place = self.places.pop(id_, None)
        if place is None:
            return
        turn, step = place
        turn.open.discard(id_)
        if step.id == id_:
            _ask(turn, step)
        # A step that waits for a person is ended so, and runs anew with what they said.
        if turn.failure is None and error is not None and type(error).__name__ != "WaitingForEvent":
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
        # A stream's reader and the span's end may get here at once, from two threads.
        with self._lock:
            if turn.done:
                return
            turn.done = True
        turn.span.end()
        turn.strays, turn.replied = tuple(self._strays), tuple(self._replied)
        self.release(turn)
        try:
            precede(turn)
            self._replied.extend(turn.predecessors[-1:])
        except Exception as error:  # noqa: BLE001 - the turn itself is not lost for that
            self.complain("reply", error)
        if turn.root.kind == "retrieve" or turn.checks:  # not a turn by itself
            return
        if turn.root.seconds is None or turn.streaming:
            turn.root.seconds = perf_counter() - turn.root.began
        try:
            self._submit(self._draft(turn))
        except Exception as error:  # noqa: BLE001 - whatever receives turns, the application goes on
            self.complain("submit", error)

    def give_up(self) -> None:
        """End the turns whose end nobody will tell any more; blocks and streams tell theirs themselves."""
        for turn in list(self._open.values()):
            if turn.root.kind != "manual":
                self._interrupt(turn)

    def _interrupt(self, turn: Turn) -> None:
        turn.status = "interrupted"
        (self.end_stream if turn.id in self.streams else self.finish)(turn)

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
            self._interrupt(turn)

    def complain(self, doing: str, error: BaseException) -> None:
        """Log that recording failed, once for each kind: the dispatcher swallows what handlers raise."""
        self._warn_once(
            (doing, type(error)),
            "recording a LlamaIndex turn failed at %s (%s); the application is not affected, but the turn "
            "may be missing or incomplete; more failures of this kind are not logged",
            doing,
            error_place(error),
        )


def _ask(turn: Turn, step: LiveStep) -> None:
    """Look for the span of a turn at its end, and of a model call at its start and end."""
    if step is turn.root:
        turn.span.ask_again()
    elif step.kind == "llm":
        turn.span.ask_of_model(step.id)


def _is_same(asked: Any, prompt: Any) -> bool:
    """Whether two prompts are one: events copy the list of messages, and a model may write them down."""
    if asked is prompt or isinstance(asked, str):
        return bool(asked == prompt)
    if isinstance(prompt, str):
        return any(texts := texts_of(asked)) and all(text in prompt for text in texts)
    # Messages are compared as objects: comparing their texts takes too long on this thread.
    return len(asked) == len(prompt) and all(one is other for one, other in zip(asked, prompt, strict=True))


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {text_of(error)}"
