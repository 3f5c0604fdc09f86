"""What may be a turn's contexts: what retriever runs and tools returned, and what steps made or were given.

Among retriever runs the outermost win: what is inside (the parts of an ensemble, the queries of a multi-query
retriever, what compression started from) is kept as stages. What steps made counts only where the prompt of
the answer holds it, unless nothing was retrieved at all.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.record import Context, ContextsSource, Stage, text_of
from steelyard.recording.provenance import (
    ModelCall,
    Provenance,
    cut_from_prompt,
    finds_nothing,
    is_action,
    is_search,
    passages_of,
    trace_provenance,
)
from steelyard_langchain._options import Options
from steelyard_langchain._turn import Earlier, Retrieval, Tool, Turn, above, outermost
from steelyard_langchain.building._extract import (
    contexts_of,
    documents_in,
    is_document,
    last_human,
    message_text,
    messages_in,
    pick,
    role_of,
)
from steelyard_langchain.building._made import in_text, named_passages
from steelyard_langchain.building._view import View

_LEAST_WORDS = 4
"""A shorter entry of a tool's list, or of a prompt, is a value and not a passage."""


@dataclass(slots=True, repr=False)
class Found:
    """The candidates of a turn, before duplicates are removed and the prompt decides."""

    contexts: list[Context] = field(default_factory=list)
    """What retriever runs and tools returned."""
    made: list[Context] = field(default_factory=list)
    """Documents that steps made or were given; taken on trust where nothing was retrieved."""
    doubtful: list[Context] = field(default_factory=list)
    """What counts only where a prompt holds it: texts under names, and documents that may be an earlier
    turn's, kept in a thread's state."""
    nearby: list[list[Context]] = field(default_factory=list)
    """What ran before the turn in its task or thread has found, by run; it counts where a prompt holds it."""
    unnamed: list[str] = field(default_factory=list)
    """Notes on what ran there and returned plain text."""
    source: ContextsSource = "retrieved"
    """How what was returned came: by a retriever, or by tools alone."""
    explicit: bool = False
    """Whether the user said where they stand; then nothing is decided by the prompt."""
    queries: list[str] = field(default_factory=list)
    """What retrievers and tools were asked."""
    stages: tuple[Stage, ...] = ()
    """Retriever runs inside of others."""
    notes: list[str] = field(default_factory=list)
    """What is lost or doubtful whatever the prompt holds."""
    doubts: list[str] = field(default_factory=list)
    """Notes on texts under names; they matter where such a text reached the answer's prompt."""

    @property
    def any(self) -> bool:
        """Whether anything was looked up, made or given that may be a context."""
        return bool(self.contexts or self.made or self.doubtful or self.nearby or self.queries)


def find_contexts(view: View, options: Options, asked: str, replies: Sequence[str]) -> Found:
    """Find what may be a turn's contexts.

    Args:
        view: The turn.
        options: Where to look.
        asked: The user's question; queries that say the same are not repeated.
        replies: What models said in the turn; a text with such a reply in it is not a passage.
    """
    found = Found()
    if options.context_key is not None:
        _explicit(found, view, options)
        return found
    for turn in view.history:
        _from_runs(found, turn, list(turn.retrievals.values()), list(turn.tools.values()), options, asked)
    _from_runs(found, view.turn, view.retrievals, view.tools, options, asked)
    _from_nearby(found, view.nearby, options, asked)
    _from_steps(found, view, replies)
    return found


def decide(found: Found, calls: Sequence[ModelCall], *, answer: str, question: str) -> Provenance:
    """Which candidates the answer is judged by: those in its prompt, or all that was retrieved."""

    def traced(candidates: Sequence[Context]) -> Provenance:
        return trace_provenance(
            candidates,
            calls,
            answer=answer,
            question=question,
            queries=found.queries,
            source=found.source,
        )

    every = traced([*found.contexts, *found.made, *itertools.chain(*found.nearby), *found.doubtful])
    if every.contexts_source != "in_prompt":
        return (
            traced(found.contexts or found.made)
            if every.contexts
            else cut_from_prompt(every, calls, question=question)
        )
    # What a step made and the prompt does not hold was not retrieved: a copy, a draft, a part.
    shown = {one.text for one in every.contexts}
    used = (group for group in found.nearby if not shown.isdisjoint(one.text for one in group))
    texts = shown | {one.text for one in (*found.contexts, *itertools.chain(*used))}
    retrieved = tuple(one for one in every.retrieved if one.text in texts)
    return replace(
        every,
        retrieved=retrieved if len(retrieved) > len(every.contexts) else (),
        notes=(*every.notes, *found.doubts),
    )


def _explicit(found: Found, view: View, options: Options) -> None:
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
    turn: Turn | Earlier,
    retrievals: list[Retrieval],
    tools: list[Tool],
    options: Options,
    asked: str,
) -> None:
    """Outermost retriever runs and tools, in the order in which they started; each is a hop."""
    hop = 1 + max((context.hop for context in found.contexts), default=-1)
    outer = [retrieval for retrieval in retrievals if outermost(turn, retrieval.key)]
    runs: list[Retrieval | Tool] = [*outer, *_searching_alone(turn, tools, outer)]
    for run in sorted(runs, key=lambda run: run.started):
        if isinstance(run, Tool):
            contexts = _from_tool(found, turn, run, options, hop)
            found.source = "tool" if contexts and not outer else found.source
        else:
            contexts = _from_retriever(found, run, asked, hop)
        found.contexts += contexts
        if query := _query_of(run):
            found.queries.append(query)
        hop += bool(contexts)
    if len(outer) < len(retrievals):
        found.stages += tuple(_stage(one) for one in retrievals if not outermost(turn, one.key))


def _searching_alone(turn: Turn | Earlier, tools: list[Tool], outer: list[Retrieval]) -> list[Tool]:
    """The tools that ran no retriever."""
    retrieving = {run for retrieval in outer for run in above(turn, retrieval.key)} if tools else set()
    return [tool for tool in tools if tool.key not in retrieving]


def _stage(run: Retrieval) -> Stage:
    """A retriever run inside of another."""
    return Stage(
        name=text_of(run.name or "retriever"),
        query=text_of(run.query),
        contexts=tuple(contexts_of(run.documents or (), query=None, hop=0)),
    )


def _from_nearby(found: Found, nearby: Sequence[Earlier], options: Options, asked: str) -> None:
    """What was retrieved before the turn in the same task or thread, and not within it; latest first."""
    known = {context.text for context in found.contexts}
    for earlier in reversed(nearby):
        before = Found()
        runs, tools = list(earlier.retrievals.values()), list(earlier.tools.values())
        _from_runs(before, earlier, runs, tools, options, asked)
        if fresh := [context for context in before.contexts if context.text not in known]:
            found.nearby.append(fresh)
            known.update(context.text for context in fresh)
        found.unnamed += before.notes


def _from_retriever(found: Found, run: Retrieval, asked: str, hop: int) -> list[Context]:
    query = text_of(run.query)
    documents = run.documents or ()
    contexts = contexts_of(documents, query=None if query == asked else query, hop=hop)
    if len(contexts) < len(documents):
        found.notes.append(f"contexts: {len(documents) - len(contexts)} documents without text")
    return contexts


def _from_tool(found: Found, turn: Turn | Earlier, tool: Tool, options: Options, hop: int) -> list[Context]:
    output = _message_of(tool.output)
    if getattr(output, "status", None) == "error":
        return []  # what went wrong is told to the model, and is not evidence
    documents = documents_in(getattr(output, "artifact", None)) or documents_in(output)
    if documents:
        return contexts_of(documents, query=_query_of(tool), hop=hop)
    if finds_nothing(message_text(output)):
        return []
    named = tool.name in options.tool_contexts
    passages = passages_of(_returned(output)) if named else _listed_by(output)
    if not passages and not options.tool_contexts and _may_tell(turn, tool):
        passages = _by_name(found, tool, output)
    return [replace(one, query=_query_of(tool), hop=hop) for one in passages]


def _by_name(found: Found, tool: Tool, output: Any) -> tuple[Context, ...]:
    """The passages in a tool's plain text if its name says that it searches; a note tells either way."""
    passages = _telling(output) if is_search(tool.name or "") else ()
    note = (
        f"contexts: the text of tool {tool.name!r} counts, as its name says that it searches"
        if passages
        else f"tool {tool.name!r} returned text; name it in tool_contexts if that is context"
    )
    if note not in found.notes:
        found.notes.append(note)
    return passages


def _message_of(output: Any) -> Any:
    """What a tool returned; of a graph's command, the message to the model that it adds."""
    update = getattr(output, "update", None)
    messages = messages_in(update) if isinstance(update, Mapping) else []
    return next((one for one in messages if role_of(one) == "tool"), output)


def _may_tell(turn: Turn | Earlier, tool: Tool) -> bool:
    """Whether a plain text may be evidence: not what an action says, nor what a model inside replied."""
    if not tool.name or tool.output is None or is_action(tool.name):
        return False
    models = turn.models if isinstance(turn, Turn) else ()
    return not any(tool.key in above(turn, key) for key in models)


def _telling(output: Any) -> tuple[Context, ...]:
    """The passages in a search's plain text, unless it is an error or too short for one."""
    text = _returned(output)
    if not isinstance(text, (str, list)):
        return ()
    text = text if isinstance(text, str) else message_text(output)
    return in_text(text) if len(text.split()) >= _LEAST_WORDS else ()


def _returned(output: Any) -> Any:
    """What a tool returned, without the message around it."""
    return getattr(output, "content", output)


def _listed_by(output: Any) -> tuple[Context, ...]:
    """The passages in a tool's list of results, as values or as JSON; a plain text may be anything."""
    value = _read(output)
    if isinstance(value, Mapping) and all(isinstance(part, (str, int, float)) for part in value.values()):
        return ()  # one flat mapping is a status or a row, unlike a list of results
    found = passages_of(value) if isinstance(value, (Mapping, list, tuple)) else ()
    return found if all(len(one.text.split()) >= _LEAST_WORDS for one in found) else ()


def _read(output: Any) -> Any:
    """What a tool returned, read where it is JSON; None of any other text."""
    value = _returned(output)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        # One block of text is all that a tool of an MCP server said, and not a list of one.
        value = message_text(output) if value[0].get("type") == "text" else value
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.lstrip()[:1] in ("[", "{") else None
    except (ValueError, RecursionError):
        return None


def _query_of(run: Retrieval | Tool) -> str | None:
    """What was asked: a retriever's query, or a tool's only text argument."""
    if isinstance(run, Retrieval):
        return text_of(run.query)
    inputs = run.inputs
    if isinstance(inputs, str):
        return text_of(inputs)
    if not isinstance(inputs, Mapping):
        return None
    texts = [value for value in inputs.values() if isinstance(value, str)]
    return text_of(texts[0]) if len(texts) == 1 else None


def _from_steps(found: Found, view: View, replies: Sequence[str]) -> None:
    """Documents and named texts among what steps returned, in the input, and in the output.

    Documents in the output may be an earlier turn's where a thread keeps its state.
    """
    hop = 1 + max((context.hop for context in found.contexts), default=-1)
    known = {context.text for context in found.contexts}
    for value in (*view.results, view.inputs):
        found.made += _new(documents_in(value), known, hop)
    left = _new(documents_in(view.outputs), known, hop)
    if "thread_id" in (view.turn.metadata or {}) or found.contexts:
        found.doubtful += left
    else:
        found.made += left
    if not found.contexts and not found.made:
        _from_messages(found, view)
    _from_names(found, view, replies, known)


def _from_names(found: Found, view: View, replies: Sequence[str], known: Iterable[str]) -> None:
    """Texts under names; those in the input are taken on trust where nothing else is there."""
    texts = [*known, *(context.text for context in itertools.chain(*found.nearby))]
    given = named_passages([view.inputs], texts, replies)
    if not found.contexts and not found.made:
        found.made += given.passages
    else:
        found.doubtful += given.passages
    texts += [context.text for context in given.passages]
    named = named_passages([*view.results, view.outputs], texts, replies)
    found.doubtful += named.passages
    found.doubts += dict.fromkeys((*given.notes, *named.notes))


def _new(documents: Iterable[Any], known: set[str], hop: int) -> list[Context]:
    """Documents that were not seen before, as contexts; `known` takes their texts in."""
    fresh = [context for context in contexts_of(documents, query=None, hop=hop) if context.text not in known]
    known.update(context.text for context in fresh)
    return fresh


def _from_messages(found: Found, view: View) -> None:
    """Artifacts of tools in the conversation, where the tools' runs were not seen."""
    messages = messages_in(view.outputs)
    after = (message for message in messages[last_human(messages) + 1 :] if role_of(message) == "tool")
    for hop, message in enumerate(after):
        documents = documents_in(getattr(message, "artifact", None))
        found.contexts += contexts_of(documents, query=None, hop=hop)
        found.source = "tool"
