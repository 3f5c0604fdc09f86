"""What ran outside of any answer, waiting for the call that uses it.

Plain Python often retrieves first and asks a model afterwards, with nothing around the two. Both run in one
task or thread, which is an identity; that the model was shown what was retrieved is decided from its prompt,
when the Record is built.

In the same way a run may be built upon what a model replied in an earlier one: a question that it wrote, or
the answers to parts of one. Nothing joins such runs, but their Records say so.
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from steelyard_langchain._turn import Earlier, Predecessor, Turn

_MOST = 8
_MOST_FOLLOWED = 12
_MOST_PROMPT = 50_000
_NOTHING: tuple[object, tuple[Earlier, ...]] = (None, ())

# A tuple, never a list: a child task takes over what was found before it began, and no sibling sees its own.
_earlier: ContextVar[tuple[object, tuple[Earlier, ...]]] = ContextVar("steelyard_earlier", default=_NOTHING)
_NOBODY: tuple[object, tuple[Predecessor, ...]] = (None, ())
_latest: ContextVar[tuple[object, tuple[Predecessor, ...]]] = ContextVar("steelyard_latest", default=_NOBODY)


class LooseRuns:
    """What ran last in the current task or thread: searches, for one handler, and runs, for one target."""

    def __init__(self, target: object) -> None:
        """Look at what is recorded for a target alone; a handler may serve a single call."""
        self._target: object = self
        with suppress(TypeError):  # not every class can be referred to weakly
            self._target = weakref.ref(target)  # the same object for the same target

    def expect(self, turn: Turn) -> None:
        """Make room for what a run will find.

        At its start: of asynchronous runs only that is told in the caller's own context. The oldest goes.
        """
        owner, earlier = _earlier.get()
        turn.earlier = Earlier(turn)
        _earlier.set((self, (*earlier[1 - _MOST :], turn.earlier) if owner is self else (turn.earlier,)))

    def nearby(self) -> tuple[Earlier, ...]:
        """What has been found before in the same task or thread, and not answered from."""
        owner, earlier = _earlier.get()
        return tuple(one for one in earlier if one.ready) if owner is self else ()

    def follow(self, turn: Turn) -> None:
        """Tell a run that begins of those before it."""
        target, latest = _latest.get()
        earlier = latest[1 - _MOST_FOLLOWED :] if target is self._target else ()
        turn.predecessors = (*earlier, Predecessor())
        _latest.set((self._target, turn.predecessors))

    def precede(self, turn: Turn) -> None:
        """Keep what a run that has ended asked a model last, for those after it."""
        model = turn.last_model
        if turn.predecessors and model is not None and model.reply is not None and _is_small(model.prompt):
            turn.predecessors[-1].call = model


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
