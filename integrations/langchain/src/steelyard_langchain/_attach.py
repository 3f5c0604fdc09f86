"""Recording every chain of the process: the framework's own hook, no patching.

LangChain asks the variables registered with `register_configure_hook` for a handler whenever a run is
configured, in every thread. It only calls `get`, so what is registered here is one slot for the whole process
instead of a context variable, whose value would reach only its own context. The slot is registered once and
emptied by `detach`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from steelyard._internal.forks import ForkLock
from steelyard.recording import TurnTarget, is_unrecorded
from steelyard_langchain._loose import current_block
from steelyard_langchain._recorder import CallbackHandler
from steelyard_langchain._stores import record_outside


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
