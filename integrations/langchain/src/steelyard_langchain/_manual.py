"""`with record(...)`: a turn for code that has no single root run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import Token
from dataclasses import replace
from typing import Any
from uuid import UUID

from steelyard.record import Context
from steelyard.recording import ManualTurn, TurnTarget
from steelyard.recording.reading import contexts_of
from steelyard_langchain._attach import attached, listen
from steelyard_langchain._loose import Block, block_var
from steelyard_langchain._recorder import CallbackHandler
from steelyard_langchain._turn import Turn


def record(
    monitor: TurnTarget | CallbackHandler | None = None,
    *,
    question: str | None = None,
    reference: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    session: str | None = None,
    user: str | None = None,
    tenant: str | None = None,
) -> ManualTurn:
    """Record a block of code as one turn; for `with` and for `async with`.

    Every LangChain run in the block belongs to the turn, in whatever tasks and LangChain threads it runs, and
    without callbacks being passed.

    Args:
        monitor: Where the turn goes: a Monitor or a CallbackHandler (whose options then apply); what is
            attached, or the process-wide default Monitor, where none is given.
        question: The user's own words; the first chain's input where none is given.
        reference: The expected answer, where somebody knows it.
        tags: For the record.
        metadata: For the record.
        session: The conversation that the turn belongs to.
        user: Who asks; stored as a keyed hash, and only if the Monitor has a `user_key`.
        tenant: The customer that the turn belongs to.

    Example:
        >>> with record(question="Who?") as turn:  # doctest: +SKIP
        ...     documents = retriever.invoke("Who?")
        ...     turn.answer = model.invoke(prompt.format(documents=documents)).content
    """
    return LangChainManualTurn(
        _handler(monitor),
        question=question,
        reference=reference,
        tags=tags,
        metadata=metadata,
        session=session,
        user=user,
        tenant=tenant,
    )


class LangChainManualTurn(ManualTurn):
    """A turn that takes in every LangChain run of its block."""

    def __init__(self, handler: CallbackHandler, **given: Any) -> None:
        super().__init__(**given)
        self._handler = handler
        self._block: Block | None = None
        self._token: Token[Block | None] | None = None

    def _open(self, given: Mapping[str, Any]) -> bool:
        turn = Turn(UUID(self.id))
        turn.given = given
        self._block = Block(turn, self._handler)
        self._handler.open_block(turn)
        listen()
        self._token = block_var.set(self._block)
        return True

    def _close(self, error: BaseException | None) -> None:
        if self._block is None or self._token is None:
            return
        with suppress(ValueError):  # a generator may be closed in another context than it was begun in
            block_var.reset(self._token)
        self._handler.close_block(self._block, error)

    def _contexts_of(self, item: Any, rank: int) -> Iterable[Context]:
        return (replace(one, rank=rank) for one in contexts_of([item]))


def _handler(monitor: TurnTarget | CallbackHandler | None) -> CallbackHandler:
    if isinstance(monitor, CallbackHandler):
        return monitor
    if monitor is None and (handler := attached()) is not None:
        return handler
    return CallbackHandler(monitor)
