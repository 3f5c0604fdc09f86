"""Recording without passing callbacks: every chain of the process, or every run of a `record` block.

LangChain asks the variables registered with `register_configure_hook` for a handler whenever a run is
configured, in every thread. It only calls `get`, so what is registered here is one slot for the whole process
instead of a context variable, whose value would reach only its own context. The slot is registered once and
emptied by `detach`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from steelyard._internal.forks import ForkLock
from steelyard.record import Context
from steelyard.recording import ManualTurn, TurnTarget, is_unrecorded
from steelyard.recording.reading import contexts_of
from steelyard_langchain._extract import answer_of
from steelyard_langchain._loose import Block, block_var, current_block
from steelyard_langchain._recorder import CallbackHandler
from steelyard_langchain._stores import record_outside
from steelyard_langchain._turn import Turn


class _Slot:
    """What LangChain takes for a context variable."""

    name = "steelyard_langchain"

    def __init__(self) -> None:
        self.handler: CallbackHandler | None = None
        self.registered = False
        self.lock = ForkLock()

    def get(self, default: Any = None) -> BaseCallbackHandler | None:
        """The handler for the run that is being configured; none for what Steelyard does itself."""
        block = current_block()
        handler: BaseCallbackHandler | None = self.handler if block is None else block.handler
        return None if handler is None or is_unrecorded() else handler


_slot = _Slot()


def listen() -> None:
    """Register the slot, once."""
    with _slot.lock:
        if not _slot.registered:
            _slot.registered = True
            record_outside(_slot.get)
            register_configure_hook(
                cast("ContextVar[Any]", _slot), inheritable=True, handle_class=CallbackHandler
            )


def attach(monitor: TurnTarget | None = None, **options: Any) -> CallbackHandler:
    """Record every chain of this process from now on, in every thread, without passing callbacks.

    A chain that is passed a `CallbackHandler` explicitly is recorded by that one only. Attaching again
    replaces the handler.

    Args:
        monitor: Where turns go; the process-wide default Monitor where none is given.
        options: As for `CallbackHandler`.

    Returns:
        The handler that records.
    """
    handler = CallbackHandler(monitor, **options)
    listen()
    _slot.handler = handler
    return handler


def detach() -> None:
    """Stop what `attach` started. OpenTurns that are open are still recorded to their end."""
    _slot.handler = None


def attached() -> CallbackHandler | None:
    """The handler that records every chain, if there is one."""
    return _slot.handler


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

    def _answer_of(self, returned: Any) -> str:
        return answer_of(returned, None, None)


def _handler(monitor: TurnTarget | CallbackHandler | None) -> CallbackHandler:
    if isinstance(monitor, CallbackHandler):
        return monitor
    if monitor is None and (handler := attached()) is not None:
        return handler
    return CallbackHandler(monitor)
