"""What is read from LangGraph's stores: `store.search(...)`, `store.get(...)` in a node, tool or middleware.

No callback tells of it, so that memories in a prompt would come from nowhere. The methods are wrapped when
the first handler is made, if LangGraph is there; each call goes on as ever, and the run around it is told
what was found.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config

from steelyard._internal.logs import SafeLogger

_log = SafeLogger("steelyard.langchain")
_READS = ("get", "search", "aget", "asearch")
_watched: set[type] = set()


def watch_memory_stores(handlers: type) -> None:
    """Wrap the reading methods of all of LangGraph's stores; once.

    Args:
        handlers: The class of handlers that record.
    """
    with suppress(ImportError):
        from langgraph.store.base import BaseStore
        from langgraph.store.base.batch import AsyncBatchedBaseStore  # has reading methods of its own

        for kind in {BaseStore, AsyncBatchedBaseStore} - _watched:
            _watched.add(kind)
            for name in _READS:
                if inspect.isfunction(read := kind.__dict__.get(name)):
                    setattr(kind, name, _told(read, functools.partial(_tell, handlers)))


def _told(read: Callable[..., Any], tell: Callable[[Any], None]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(read):

        @functools.wraps(read)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            found = await read(*args, **kwargs)
            tell(found)
            return found

        return awaited

    @functools.wraps(read)
    def called(*args: Any, **kwargs: Any) -> Any:
        found = read(*args, **kwargs)
        tell(found)
        return found

    return called


def _tell(handlers: type, found: Any) -> None:
    """Tell the handler of the run around what was found: the values of one entry, or of several."""
    try:
        manager: Any = (var_child_runnable_config.get() or {}).get("callbacks")
        if not found or manager is None:
            return
        values = [one.value for one in found] if isinstance(found, list) else [found.value]
        for handler in manager.handlers:
            if isinstance(handler, handlers):
                handler.keep_memories(manager.parent_run_id, values)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - objects of the host may raise anything
        _log.debug("what was read from a store was not recorded")
