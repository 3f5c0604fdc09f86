"""What ran outside of any answer, waiting for the call that uses it.

Plain Python often retrieves first and asks a model afterwards, with nothing around the two. Both run in one
task or thread, which is an identity; that the model was shown what was retrieved is decided from its prompt,
when the Record is built.
"""

from __future__ import annotations

from contextvars import ContextVar

from steelyard_langchain._turn import Earlier, Turn

_MOST = 8
_NOTHING: tuple[object, tuple[Earlier, ...]] = (None, ())

# A tuple, never a list: a child task takes over what was found before it began, and no sibling sees its own.
_earlier: ContextVar[tuple[object, tuple[Earlier, ...]]] = ContextVar("steelyard_earlier", default=_NOTHING)


class LooseRuns:
    """The latest searches of the current task or thread, for one handler."""

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
