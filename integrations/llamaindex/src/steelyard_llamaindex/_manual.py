"""`with record(question=...)`: a turn for code that retrieves and completes on its own, without an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from steelyard.recording import is_unrecorded
from steelyard_llamaindex import _attach
from steelyard_llamaindex._open_turns import Turn, Turns, current_place

__all__ = ["ManualTurn", "record"]


@dataclass
class ManualTurn:
    """What a `record` block hands to its body."""

    id: str
    """The id of its record, for `Monitor.feedback`."""
    answer: str | None = None
    """What the user is shown; without it, what a query engine or a language model replied last."""


@contextmanager
def record(
    question: str,
    *,
    reference: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Iterator[ManualTurn]:
    """Record what happens in a block as one turn.

    Every retrieval, query and model call inside belongs to it, also in tasks that it starts and awaits.
    Nothing is recorded while `instrument` is not in force.

    Args:
        question: What the user asked.
        reference: The expected answer, where it is known.
        tags: Tags of the record.
        metadata: Metadata of the record.

    Example:
        ```python
        with record(question=question) as turn:
            nodes = retriever.retrieve(question)
            turn.answer = str(llm.complete(prompt(question, nodes)))
        ```
    """
    handle = ManualTurn(f"record-{uuid4()}")
    turns = _attach.active()
    if turns is None or is_unrecorded():
        yield handle
        return
    given = {**(metadata or {}), "reference": reference, "tags": list(tags)}
    turn = turns.open(handle.id, "manual", asked=question, name="record", tags=given)
    token = current_place.set((turn, turn.root))
    try:
        yield handle
    except BaseException as error:
        turns.fail(turn, error)
        raise
    finally:
        _reset(token)
        _end(turns, turn, handle)


def _end(turns: Turns, turn: Turn, handle: ManualTurn) -> None:
    turn.root.result = handle.answer
    turns.finish(turn)


def _reset(token: Any) -> None:
    try:
        current_place.reset(token)
    except ValueError:  # an asynchronous generator may be closed in a context other than its own
        current_place.set(None)
