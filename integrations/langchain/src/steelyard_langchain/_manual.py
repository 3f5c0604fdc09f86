"""`with record(...)`: a turn for code that has no single root run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import Token
from types import TracebackType
from typing import Any, Self
from uuid import UUID, uuid4

from steelyard.record import Context
from steelyard.recording import current_trace, is_unrecorded
from steelyard_langchain._attach import attached, listen
from steelyard_langchain._block import Block, block_var
from steelyard_langchain._recorder import CallbackHandler, Recorder
from steelyard_langchain._shapes import contexts_of
from steelyard_langchain._turn import Turn

__all__ = ["Recording", "record"]


def record(
    monitor: Recorder | CallbackHandler | None = None,
    *,
    question: str | None = None,
    reference: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Recording:
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

    Example:
        >>> with record(question="Who?") as turn:  # doctest: +SKIP
        ...     documents = retriever.invoke("Who?")
        ...     turn.answer = model.invoke(prompt.format(documents=documents)).content
    """
    given: dict[str, Any] = {"tags": tuple(tags), "metadata": metadata}
    if question is not None:
        given["question"] = question
    if reference is not None:
        given["reference"] = reference
    return Recording(monitor, given)


class Recording:
    """An open `record` block."""

    def __init__(self, monitor: Recorder | CallbackHandler | None, given: dict[str, Any]) -> None:
        self.id: str = ""
        """The id of the record that the block will make; for `feedback`."""
        self.answer: str | None = None
        """What the user was shown; set it, or the last chain's output (the last model's reply) is taken."""
        self.contexts: Iterable[Any] | None = None
        """Passages (texts, documents, Contexts) to judge by; set it only where no retriever finds them."""
        self._monitor = monitor
        self._given = given
        self._block: Block | None = None
        self._token: Token[Block | None] | None = None

    def __enter__(self) -> Self:
        root: UUID = uuid4()
        self.id = str(root)
        if is_unrecorded():
            return self
        turn = Turn(root, current_trace(run_id=self.id, framework="langchain"))
        turn.given = self._given
        handler = self._handler()
        self._block = Block(turn, handler)
        handler.open_block(turn)
        listen()
        self._token = block_var.set(self._block)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        block = self._block
        if block is None or self._token is None:
            return
        with suppress(ValueError):  # a generator may be closed in another context than it was begun in
            block_var.reset(self._token)
        given = self._given
        if self.answer is not None:
            given["answer"] = self.answer
        if self.contexts is not None:
            given["contexts"] = _contexts(self.contexts)
        block.handler.close_block(block, error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, where)

    def _handler(self) -> CallbackHandler:
        if isinstance(self._monitor, CallbackHandler):
            return self._monitor
        if self._monitor is None and (handler := attached()) is not None:
            return handler
        return CallbackHandler(self._monitor)


def _contexts(given: Iterable[Any]) -> tuple[Context, ...]:
    found: list[Context] = []
    for at, item in enumerate([given] if isinstance(given, str) else given):
        found += [item] if isinstance(item, Context) else contexts_of([item], query=None, hop=0, start=at)
    return tuple(found)
