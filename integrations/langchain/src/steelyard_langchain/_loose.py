"""What runs without a root belong to: the `record` block that is current, or the call that uses them later.

Plain Python often retrieves first and asks a model afterwards, with nothing around the two. Both run in one
task or thread, which is an identity; that the model was shown what was retrieved is decided from its prompt,
when the Record is built.

In the same way a run may be built upon what a model replied in an earlier one: a question that it wrote, or
the answers to parts of one. Nothing joins such runs, but their Records say so.

Code also hands work to threads that know nothing of the turn around them (`loop.run_in_executor`, a pool's
`map`). What ran last is kept for the turns that end after it, whose prompts tell whether they used it.
"""

from __future__ import annotations

import time
import weakref
from collections import deque
from contextlib import suppress
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from steelyard_langchain._turn import Earlier, Model, Predecessor, Stray, Turn


class Block:
    """A turn that is opened and closed by the user's code instead of by a root run."""

    __slots__ = ("handler", "maps", "turn")

    def __init__(self, turn: Turn, handler: BaseCallbackHandler) -> None:
        self.turn = turn
        self.handler = handler
        self.maps: list[dict[int, Turn]] = []

    def adopt(self, runs: dict[int, Turn], run_id: UUID, inputs: Any = None) -> Turn | None:
        """Make a root run part of this turn.

        Args:
            runs: The handler's runs, which this block cleans up when it closes.
            run_id: The run.
            inputs: What a chain was given; the first one is the turn's input.
        """
        turn, key = self.turn, run_id.int
        if turn.closed or key in turn.parents:
            return None
        if not any(known is runs for known in self.maps):
            self.maps.append(runs)
        if turn.inputs is None:
            turn.inputs = inputs
        if isinstance(inputs, (list, dict)):
            turn.results.append((time.perf_counter(), inputs, False))
        turn.parents[key] = turn.root.int
        runs[key] = turn
        return turn


block_var: ContextVar[Block | None] = ContextVar("steelyard_langchain_block", default=None)


def current_block() -> Block | None:
    """The block that the current code runs in; none where it has ended and left this task behind."""
    block = block_var.get()
    return None if block is None or block.turn.closed else block


_MOST = 8
_MOST_FOLLOWED = 12
_MOST_STRAYS = 128
_MOST_PROMPT = 50_000
MOST_ASKED = 4
"""Calls at the end of a run, one of which may be the answer's."""


_Ran = tuple[object, tuple[Earlier, ...], object, tuple[Predecessor, ...]]
"""What ran in a task or thread: a handler and what it saw there, a target and the runs recorded for it.

All tuples: a child task takes over what ran before it began, and no sibling sees its own. A class with names
would cost the host a fifth of a microsecond in every turn.
"""
_NOTHING: _Ran = (None, (), None, ())
_ran: ContextVar[_Ran] = ContextVar("steelyard_ran", default=_NOTHING)


class OrphanRuns:
    """What ran last in the current task or thread: searches, for one handler, and runs, for one target."""

    def __init__(self, target: object) -> None:
        """Look at what is recorded for a target alone; a handler may serve a single call."""
        self._target: object = self
        with suppress(TypeError):  # not every class can be referred to weakly
            self._target = weakref.ref(target)  # the same object for the same target
        self.strays: deque[Stray] = deque(maxlen=_MOST_STRAYS)
        """What the latest runs found or replied, in whatever thread."""

    def begin(self, turn: Turn, *, finds: bool = True, follows: bool = True) -> None:
        """Tell a run that begins of those before it, and make room for what it will leave to those after it.

        At its start: of asynchronous runs only that is told in the caller's own context. The oldest goes.

        Args:
            turn: The run.
            finds: Whether it may find what a later run uses.
            follows: Whether a model is asked in it, whose reply a later run may be built upon.
        """
        handler, earlier, target, latest = _ran.get()
        own = turn.nearby = earlier if handler is self else ()
        if finds:
            turn.earlier = Earlier(turn.parents, turn.retrievals, turn.tools)
            handler, earlier = self, (*own[1 - _MOST :], turn.earlier)
        if follows:
            before = latest[1 - _MOST_FOLLOWED :] if target is self._target else ()
            turn.predecessors = (*before, Predecessor())
            target, latest = self._target, turn.predecessors
        _ran.set((handler, earlier, target, latest))

    def precede(self, turn: Turn) -> None:
        """Keep what a run that has ended found, and what it asked a model last, for those after it."""
        model = turn.last_model
        if model is not None:
            if turn.predecessors:
                turn.predecessors[-1].asked = asked_last(turn)
                turn.predecessors[-1].found = _found_for(turn)
            if model.reply is None or not _is_small(model.prompt):
                return
        if model is not None or turn.earlier is not None:
            self.strays.append(Stray(turn.started, model, turn.earlier, turn.thread, turn.nearby))


def _found_for(turn: Turn) -> Earlier | None:
    """What a run looked up; for a call by itself the last look-up before it."""
    if not turn.loose:
        return Earlier(turn.parents, turn.retrievals, turn.tools) if turn.retrievals else None
    last = next(reversed(turn.found_before), None)
    return Earlier(last.parents, last.retrievals, last.tools) if last else None


def asked_last(turn: Turn) -> list[Model]:
    """The last models that a run asked: after the one that answered others may check or name the answer."""
    models = list(turn.models.values())[-MOST_ASKED:]
    return [one for one in models if one.reply is not None and _is_small(one.prompt)]


def _is_small(prompt: Any) -> bool:
    """Whether a prompt is text alone, and little enough of it to be kept for as long as a thread lives."""
    size = 0
    for batch in prompt or ():
        for message in (batch,) if isinstance(batch, str) else batch:
            content = message if isinstance(message, str) else getattr(message, "content", None)
            if not isinstance(content, str):
                return False
            size += len(content)
    return size <= _MOST_PROMPT
