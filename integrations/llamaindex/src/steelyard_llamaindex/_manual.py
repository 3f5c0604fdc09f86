"""`with record(question=...)`: a turn for code that retrieves and completes on its own, without an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import Token
from typing import Any

from steelyard.record import Context
from steelyard.recording import ManualTurn
from steelyard.recording.reading import attribute
from steelyard_llamaindex import _attach
from steelyard_llamaindex._open_turns import OpenTurns
from steelyard_llamaindex._translate import Nodes
from steelyard_llamaindex._turn import Place, Turn, current_place


def record(
    question: str,
    *,
    reference: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    session: str | None = None,
    user: str | None = None,
    tenant: str | None = None,
) -> ManualTurn:
    """Record what happens in a block as one turn; for `with` and for `async with`.

    Every retrieval, query and model call inside belongs to it, also in tasks that it starts and awaits.
    Nothing is recorded while `instrument` is not in force.

    Args:
        question: What the user asked.
        reference: The expected answer, if it is known.
        tags: Tags of the record.
        metadata: Metadata of the record.
        session: The conversation that the turn belongs to.
        user: Who asks; stored as a keyed hash, and only if the Monitor has a `user_key`.
        tenant: The customer that the turn belongs to.

    Example:
        ```python
        with record(question=question) as turn:
            nodes = retriever.retrieve(question)
            turn.answer = str(llm.complete(prompt(question, nodes)))
        ```
    """
    return LlamaIndexManualTurn(
        question=question,
        reference=reference,
        tags=tags,
        metadata=metadata,
        session=session,
        user=user,
        tenant=tenant,
    )


class LlamaIndexManualTurn(ManualTurn):
    """A turn that takes in every LlamaIndex span of its block."""

    _turns: OpenTurns
    _turn: Turn
    _token: Token[Place | None]

    def _open(self, given: Mapping[str, Any]) -> bool:
        turns = _attach.active()
        if turns is None:
            return False
        self._turns = turns
        self._turn = turns.open(self.id, "manual", asked=given.get("question"), name="record", tags={})
        self._turn.given = given
        self._token = current_place.set((self._turn, self._turn.root))
        return True

    def _close(self, error: BaseException | None) -> None:
        try:
            current_place.reset(self._token)
        except ValueError:  # an asynchronous generator may be closed in a context other than its own
            current_place.set(None)
        if error is not None:
            self._turns.fail(self._turn, error)
        else:
            self._turns.finish(self._turn)

    def _contexts_of(self, item: Any, rank: int) -> Iterable[Context]:
        if isinstance(item, str):
            return [Context(text=item, rank=rank)] if item.strip() else []
        scored = item if attribute(item, "node") is not None else _Unscored(item)
        return Nodes().contexts([scored], start=rank)


class _Unscored:
    """A node that comes without a score."""

    score = None

    def __init__(self, node: Any) -> None:
        self.node = node
