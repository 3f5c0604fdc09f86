"""The span of a turn's root: what LangChain tells of runs, in the terms of `steelyard.recording.RunSpan`.

A vendor's tracing for LangChain is a callback handler beside ours, which mostly does not make its spans
current. The handlers of a run are those of the manager that tells us of an event, so it is looked for among
the frames that call us: what LangChain hands down otherwise is set below the root alone, never for a model
that is called by itself. LangSmith's tracer needs none of this: its runs have LangChain's own ids.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from uuid import UUID

from langchain_core.callbacks import manager

from steelyard.recording import RunSpan

_NAMES = ("langchain", "langgraph")
_MANAGERS = vars(manager)
_MOST_FRAMES = 16


class RootSpan(RunSpan):
    """Which span the scores of a run tree go on; made when LangChain tells that its root begins."""

    __slots__ = ("_handlers", "_root")

    def __init__(self, root: UUID) -> None:
        super().__init__("langchain", _NAMES)
        self._root = root
        self._handlers: Sequence[object] = ()
        self.ask_again()

    def ask_again(self) -> None:
        """Ask the handlers that are being told of an event: at the root's start and at its end."""
        if not self.settled:
            self.ask(self._told(), self._root, str(self._root))
            if len(self._handlers) == 1:  # none but ours
                self.settled = True

    def ask_of_model(self, run_id: UUID) -> None:
        """Ask for the span of a model run, at its start and at its end."""
        if not self.settled:
            self.ask_of_call(self._told(), run_id, str(run_id))

    def _told(self) -> Sequence[object]:
        self._handlers = _handlers() or self._handlers
        return self._handlers if len(self._handlers) > 1 else ()


def _handlers() -> Sequence[object]:
    """The handlers of the manager that is telling us of an event, ours among them; none outside of any."""
    frame: FrameType | None = sys._getframe(3)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        if frame.f_globals is _MANAGERS:
            handlers: Sequence[object] | None = getattr(frame.f_locals.get("self"), "handlers", None)
            if handlers is not None:
                return handlers
        frame = frame.f_back
    return ()
