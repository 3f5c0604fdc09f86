"""Searches of vector stores that no retriever makes, and reads of LangGraph's stores, in a node or a tool.

LangChain tells handlers what retrievers found, and never what is searched without one, so that such passages
could only be guessed from prompts. So the search methods of all classes of vector stores are wrapped when the
first handler is made: each call tells the handler of the run around it what a retriever would tell, and does
nothing else. Other handlers and tracers see no difference. What a retriever searches is told by it alone.
LangGraph's memories, of which no callback tells either, are told in the same way.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.example_selectors import (
    MaxMarginalRelevanceExampleSelector,
    SemanticSimilarityExampleSelector,
)
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.vectorstores import VectorStore

from steelyard._internal.logs import SafeLogger

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
                    setattr(kind, name, _telling(read, functools.partial(_tell, handlers)))


def _telling(read: Callable[..., Any], tell: Callable[[Any], None]) -> Callable[..., Any]:
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


_log = SafeLogger("steelyard.langchain")
_SEARCHES = (
    "similarity_search",
    "similarity_search_by_vector",
    "similarity_search_with_score",
    "similarity_search_with_relevance_scores",
    "max_marginal_relevance_search",
    "max_marginal_relevance_search_by_vector",
)
_told: ContextVar[bool] = ContextVar("steelyard_langchain_search_told", default=False)
"""Whether a search or a retriever around the present call tells of it."""


@dataclass
class PresetDocuments:
    """Documents that searches return instead of searching."""

    documents: tuple[Document, ...]
    searches: int = 0
    """How many did."""

    def found(self, search: str) -> list[Any]:
        """What a search of this name returns."""
        self.searches += 1
        return [(one, 1.0) for one in self.documents] if "_with_" in search else list(self.documents)


_handed: ContextVar[PresetDocuments | None] = ContextVar("steelyard_langchain_handed", default=None)


@contextmanager
def handing(documents: Sequence[Document]) -> Iterator[PresetDocuments]:
    """In this block no retriever and no vector store searches; each returns these documents."""
    handed = PresetDocuments(tuple(documents))
    token = _handed.set(handed)
    try:
        yield handed
    finally:
        _handed.reset(token)


class _Watch:
    """Who records; there is one for the process."""

    def __init__(self) -> None:
        self.handlers: type | None = None
        self.outside: Callable[[], Any] = lambda: None

    def recorder(self, manager: Any) -> Any:
        """The handler of a run, or the one that records what no run holds."""
        if not isinstance(manager, BaseCallbackManager):
            return self.outside()
        ours = (one for one in manager.handlers if self.handlers and isinstance(one, self.handlers))
        return next(ours, None) or self.outside()


_watch = _Watch()


def watch_vector_stores(handlers: type) -> None:
    """Wrap the search methods of all vector stores, those of classes that are still to come too; once.

    Args:
        handlers: The class of handlers that record.
    """
    if _watch.handlers is not None:
        return
    _watch.handlers = handlers
    for name in ("invoke", "ainvoke"):
        setattr(BaseRetriever, name, _around(BaseRetriever.__dict__[name], _Retrieving))
    for chooser in (SemanticSimilarityExampleSelector, MaxMarginalRelevanceExampleSelector):
        for name in ("select_examples", "aselect_examples"):
            setattr(chooser, name, _untold(chooser.__dict__[name]))
    _wrap_all(VectorStore)  # type: ignore[type-abstract]
    begin = VectorStore.__dict__.get("__init_subclass__")

    def begin_and_wrap(cls: type[VectorStore], /, **kwargs: Any) -> None:
        # The class has none of its own so far.
        (super(VectorStore, cls).__init_subclass__ if begin is None else begin.__get__(None, cls))(**kwargs)
        _wrap(cls)

    VectorStore.__init_subclass__ = classmethod(begin_and_wrap)  # type: ignore[assignment]


def record_outside(handler: Callable[[], Any]) -> None:
    """Say who records a search that no run holds."""
    _watch.outside = handler


def _wrap_all(kind: type[VectorStore]) -> None:
    _wrap(kind)
    for each in kind.__subclasses__():
        _wrap_all(each)


def _wrap(kind: type) -> None:
    for name in (*_SEARCHES, *(f"a{name}" for name in _SEARCHES)):
        if inspect.isfunction(search := kind.__dict__.get(name)):
            setattr(kind, name, _around(search, _Search))


class _Retrieving:
    """A retriever's own call: LangChain tells of it, and so of what it searches."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.token: Token[bool] | None = None

    def __enter__(self) -> _Retrieving:
        self.token = _told.set(True)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.token is not None:
            _told.reset(self.token)

    def keep(self, found: Any) -> Any:
        """What was found, as it is."""
        return found


class _Search(_Retrieving):
    """One search, told to the handler that records; whatever happens here, the search goes on."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__(name, args, kwargs)
        self.id = uuid4()
        self.handler: Any = None
        self.found: tuple[Any, ...] = ()
        if _told.get():
            return
        try:
            manager: Any = (var_child_runnable_config.get() or {}).get("callbacks")
            handler = _watch.recorder(manager)
            if handler is not None:
                query = args[1] if len(args) > 1 else kwargs.get("query")
                parent = getattr(manager, "parent_run_id", None)
                told = query if isinstance(query, str) else ""
                handler.on_retriever_start(None, told, run_id=self.id, parent_run_id=parent, name=name)
                self.handler = handler
        except Exception:  # noqa: BLE001 - objects of the host may raise anything
            _log.debug("a search of a vector store was not recorded")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if self.handler is None:
            return
        try:
            if error is None:
                self.handler.on_retriever_end(self.found, run_id=self.id)
            else:
                self.handler.on_retriever_error(error, run_id=self.id)
        except Exception:  # noqa: BLE001 - as above
            _log.debug("what a search of a vector store found was not recorded")

    def keep(self, found: Any) -> Any:
        """Remember the documents, without a score beside one: with many stores it is a distance."""
        if isinstance(found, list):
            self.found = tuple(one[0] if isinstance(one, tuple) and one else one for one in found)
        return found


def _untold(choose: Callable[..., Any]) -> Callable[..., Any]:
    """A method that searches for examples of a prompt: these are instructions, and no passages."""

    @contextmanager
    def untold() -> Iterator[None]:
        told, handed = _told.set(True), _handed.set(None)
        try:
            yield
        finally:
            _handed.reset(handed)
            _told.reset(told)

    if inspect.iscoroutinefunction(choose):

        @functools.wraps(choose)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with untold():
                return await choose(*args, **kwargs)

        return awaited

    @functools.wraps(choose)
    def called(*args: Any, **kwargs: Any) -> Any:
        with untold():
            return choose(*args, **kwargs)

    return called


def _around(call: Callable[..., Any], kind: type[_Retrieving]) -> Callable[..., Any]:
    """A method that runs within what tells of it."""
    if inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            if (handed := _handed.get()) is not None:
                return handed.found(call.__name__)
            with kind(call.__name__, args, kwargs) as run:
                return run.keep(await call(*args, **kwargs))

        return awaited

    @functools.wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        if (handed := _handed.get()) is not None:
            return handed.found(call.__name__)
        with kind(call.__name__, args, kwargs) as run:
            return run.keep(call(*args, **kwargs))

    return called
