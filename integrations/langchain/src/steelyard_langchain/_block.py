"""The `record` block that is current, if any: the turn that runs without a root belong to."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from steelyard_langchain._turn import Turn


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
