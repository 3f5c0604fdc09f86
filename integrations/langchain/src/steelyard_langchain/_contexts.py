"""Where a turn's contexts came from: retriever runs, tools, chain results, or what the chain was given.

The first of these that has any wins. Among retriever runs the outermost win: what is inside (the parts of an
ensemble, the queries of a multi-query retriever, what compression started from) is kept as stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from steelyard.record import Context, ContextsSource, Stage, text_of
from steelyard_langchain._extract import (
    contexts_of,
    documents_in,
    is_document,
    last_human,
    messages_in,
    pick,
    role_of,
    text_in,
)
from steelyard_langchain._options import Options
from steelyard_langchain._turn import Retrieval, Tool, Turn, above, outermost

_GIVEN_KEYS = ("context", "contexts", "documents", "docs", "input_documents", "retrieved_contexts")


@dataclass(slots=True)
class Found:
    """The contexts of a turn before duplicates are removed."""

    contexts: list[Context] = field(default_factory=list)
    source: ContextsSource = "retrieved"
    explicit: bool = False
    """Whether the user said where they stand; then nothing is decided by the prompt."""
    doubtful: bool = False
    """Whether they may be an earlier turn's, kept in a thread's state; then only those in a prompt count."""
    stages: tuple[Stage, ...] = ()
    notes: list[str] = field(default_factory=list)


class Seen(Protocol):
    """The part of a turn that contexts are looked for in."""

    turn: Turn
    history: list[Turn]
    inputs: Any
    outputs: Any
    retrievals: list[Retrieval]
    tools: list[Tool]
    results: list[Any]


def find_contexts(view: Seen, options: Options, asked: str) -> Found:
    """Find a turn's contexts.

    Args:
        view: The turn.
        options: Where to look.
        asked: The user's question; queries that say the same are not repeated.
    """
    found = Found()
    if options.context_key is not None:
        _explicit(found, view, options)
        return found
    for turn in view.history:
        _from_runs(found, turn, list(turn.retrievals.values()), list(turn.tools.values()), options, asked)
    _from_runs(found, view.turn, view.retrievals, view.tools, options, asked)
    if not found.contexts:
        _from_results(found, view)
    return found


def _explicit(found: Found, view: Seen, options: Options) -> None:
    assert options.context_key is not None
    found.explicit = True
    value = pick(view.outputs, options.context_key)
    if value is None and isinstance(options.context_key, str):
        value = pick(view.inputs, options.context_key)
    found.contexts = contexts_of(_listed(value), query=None, hop=0)
    if not found.contexts:
        found.notes.append(f"contexts: nothing under context_key {options.context_key!r}")


def _listed(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    if isinstance(value, (str, Mapping)) or is_document(value):
        return (value,)
    return value if isinstance(value, (list, tuple)) else documents_in(value)


def _from_runs(
    found: Found,
    turn: Turn,
    retrievals: list[Retrieval],
    tools: list[Tool],
    options: Options,
    asked: str,
) -> None:
    """Outermost retriever runs and tools, in the order in which they started; each is a hop."""
    hop = 1 + max((context.hop for context in found.contexts), default=-1)
    outer = [retrieval for retrieval in retrievals if outermost(turn, retrieval.key)]
    retrieving = {run for retrieval in outer for run in above(turn, retrieval.key)} if tools else set()
    asking: list[Retrieval | Tool] = [*outer, *(tool for tool in tools if tool.key not in retrieving)]
    for run in sorted(asking, key=lambda run: run.started) if len(asking) > 1 else asking:
        contexts = (
            _from_tool(found, run, options, hop)
            if isinstance(run, Tool)
            else _from_retriever(found, run, asked, hop)
        )
        if contexts and isinstance(run, Tool) and not outer:
            found.source = "tool"
        found.contexts += contexts
        hop += bool(contexts)
    if len(outer) == len(retrievals):
        return
    found.stages += tuple(
        Stage(
            name=text_of(retrieval.name or "retriever"),
            query=text_of(retrieval.query),
            contexts=tuple(contexts_of(retrieval.documents or (), query=None, hop=0)),
        )
        for retrieval in retrievals
        if not outermost(turn, retrieval.key)
    )


def _from_retriever(found: Found, run: Retrieval, asked: str, hop: int) -> list[Context]:
    query = text_of(run.query)
    documents = run.documents or ()
    contexts = contexts_of(documents, query=None if query == asked else query, hop=hop)
    if len(contexts) < len(documents):
        found.notes.append(f"contexts: {len(documents) - len(contexts)} documents without text")
    return contexts


def _from_tool(found: Found, tool: Tool, options: Options, hop: int) -> list[Context]:
    output = tool.output
    documents = documents_in(getattr(output, "artifact", None)) or documents_in(output)
    if not documents and tool.name in options.tool_contexts:
        documents = [text_in(output) or text_of(output)]
    elif not documents and output is not None and not options.tool_contexts and tool.name:
        note = f"tool {tool.name!r} returned text; name it in tool_contexts if that is context"
        if note not in found.notes:
            found.notes.append(note)
    return contexts_of(documents, query=_tool_query(tool), hop=hop)


def _tool_query(tool: Tool) -> str | None:
    """What the tool was asked: its only text argument."""
    inputs = tool.inputs
    if isinstance(inputs, str):
        return text_of(inputs)
    if not isinstance(inputs, Mapping):
        return None
    texts = [value for value in inputs.values() if isinstance(value, str)]
    return text_of(texts[0]) if len(texts) == 1 else None


def _from_results(found: Found, view: Seen) -> None:
    """No retriever run, no tool: documents among chain results, in the conversation, or in the input."""
    for value in (*view.results, view.inputs):
        found.contexts += contexts_of(documents_in(value), query=None, hop=0)
    if found.contexts:
        return
    found.contexts += contexts_of(documents_in(view.outputs), query=None, hop=0)
    if found.contexts:
        found.doubtful = "thread_id" in (view.turn.metadata or {})
        return
    messages = messages_in(view.outputs)
    for hop, message in enumerate(
        message for message in messages[last_human(messages) + 1 :] if role_of(message) == "tool"
    ):
        documents = documents_in(getattr(message, "artifact", None))
        found.contexts += contexts_of(documents, query=None, hop=hop)
        found.source = "tool"
    if not found.contexts and isinstance(view.inputs, Mapping):
        texts = next((view.inputs[name] for name in _GIVEN_KEYS if view.inputs.get(name)), None)
        found.contexts += contexts_of(_listed(texts), query=None, hop=0)
