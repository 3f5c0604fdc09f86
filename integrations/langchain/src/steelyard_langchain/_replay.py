"""A chain, agent or graph as a function that answers from passages it is handed, for experiments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.runnables import RunnableBinding
from langsmith import tracing_context

from steelyard.errors import ConfigurationError
from steelyard.record import Context
from steelyard.recording import unrecorded
from steelyard.recording.reading import text_in
from steelyard_langchain._recorder import CallbackHandler
from steelyard_langchain._stores import handing, watch_vector_stores

_QUESTIONS = ("question", "input", "query")
_ANSWERS = ("answer", "output", "result", "response", "generation", "text")


def replay_of(application: Any, *, key: str = "") -> Callable[[str, Sequence[Context]], str]:
    """An application of LangChain without its retrieval, for `steelyard.diagnosis.Experiments`.

    It runs as it is, only that each retriever and vector store in it returns the passages it is handed.
    It is not traced, and a graph runs without its checkpointer, so that no conversation remembers it.

    Args:
        application: A chain, agent or graph: anything with `invoke`.
        key: The name under which it takes the question, where its input is a mapping. Found out if it is
            one of `messages`, `question`, `input` and `query`, or the only one.

    Returns:
        `replay(question, contexts)`. It raises LookupError if the application searched for nothing, since
        its answer then does not come from the passages.

    Raises:
        ConfigurationError: If nothing says how to ask it.
    """
    runnable = _silent(application)
    given = _input(runnable, key)
    watch_vector_stores(CallbackHandler)

    def replay(question: str, contexts: Sequence[Context]) -> str:
        documents = [Document(page_content=one.text, id=one.id) for one in contexts]
        with unrecorded(), tracing_context(enabled=False), handing(documents) as handed:
            found = _called(runnable, given(question))
        if not handed.searches:
            raise LookupError("no retriever and no vector store was asked")
        return _answer(found)

    return replay


def _silent(application: Any) -> Any:
    """The application without what is bound to its outside for tracing, and without a checkpointer."""
    if isinstance(application, RunnableBinding):
        config = {name: value for name, value in application.config.items() if name != "callbacks"}
        return application.model_copy(update={"bound": _silent(application.bound), "config": config})
    if getattr(application, "checkpointer", None) is not None:
        return application.copy(update={"checkpointer": None})
    if not callable(getattr(application, "invoke", None)):
        raise ConfigurationError(f"replay_of takes a chain, agent or graph, not {application!r}")
    return application


def _input(runnable: Any, key: str) -> Callable[[str], Any]:
    """How it is asked."""
    names = list((runnable.get_input_jsonschema().get("properties") or {}) if not key else [key])
    if key:
        return lambda question: {key: question}
    if "messages" in names:
        return lambda question: {"messages": [("user", question)]}
    if not names:
        return lambda question: question
    chosen = next((name for name in _QUESTIONS if name in names), names[0] if len(names) == 1 else None)
    if chosen is None:
        raise ConfigurationError(f"replay_of cannot tell which of {names} is the question; say key=")
    return lambda question: {chosen: question}


def _called(runnable: Any, given: Any) -> Any:
    """Its result; one whose steps are async alone runs in a loop of its own."""
    config = {"callbacks": [], "configurable": {"thread_id": str(uuid4())}}
    try:
        return runnable.invoke(given, config)
    except TypeError as error:
        if "synchronous" not in str(error):
            raise
    return asyncio.run(runnable.ainvoke(given, config))


def _answer(found: Any) -> str:
    if isinstance(found, Mapping):
        said = next((found[name] for name in _ANSWERS if found.get(name)), None)
        messages = found.get("messages")
        return _answer(messages[-1] if said is None and messages else said)
    return text_in(found if isinstance(found, str) else getattr(found, "content", ""))
