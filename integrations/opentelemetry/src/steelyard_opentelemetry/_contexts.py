"""Where a turn's documents hide, in the order in which they are believed.

A mark by hand; what retrievers returned (with ids and scores out of metadata); a step's list of documents;
prompt variables; tool results; the prompt itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from steelyard.record import Context, ContextsSource, Stage
from steelyard.recording import unique
from steelyard_opentelemetry._documents import documents_in, merged
from steelyard_opentelemetry._payload import result_in
from steelyard_opentelemetry._prompt import context_block, split_passages
from steelyard_opentelemetry._tool_results import fields_with_passages, listed_in, parts_of
from steelyard_opentelemetry._tree import Node
from steelyard_opentelemetry._turn import Turn
from steelyard_opentelemetry.dialects import ParsedSpan

__all__ = ["Found", "find_contexts"]

_VARIABLE = re.compile(
    r"^(?:context|contexts|context_str|documents?|docs|sources?|summaries|passages?|chunks|knowledge|retrieved\w*)$",
    re.IGNORECASE,
)
_RETRIEVING = re.compile(
    r"search|retriev|lookup|look_up|knowledge|information|docs?\b|document|wiki|\brag\b|query_engine|find_",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The documents of a turn."""

    contexts: tuple[Context, ...] = ()
    """With their texts, best first within each hop."""
    stages: tuple[Stage, ...] = ()
    """Inner retrievals that returned something else than the outermost one."""
    reranked: tuple[Context, ...] = ()
    """What a reranker left, where there was one."""
    source: ContextsSource = "retrieved"
    """How they came in, where the prompt does not decide it."""
    note: str = ""
    """Where they were found, if that was not a retriever."""
    bare: int = 0
    """How many are told by id and score alone."""
    given: bool = False
    """Whether the user marked them by hand, so that all of them count."""
    guessed: bool = False
    """Whether they were cut out of a prompt, where nothing else has them."""


def find_contexts(turn: Turn) -> Found:
    """The documents of a turn, from the best place that has them."""
    if not isinstance(turn.found, Found):
        turn.found = _find(turn)
    return turn.found


def _find(turn: Turn) -> Found:
    marked = [sight.documents for _, sight in turn.seen("turn") if sight.documents]
    if marked:
        return Found(contexts=_ranked(marked[0]), given=True)
    hops = list(_hops(turn))
    told = tuple(document for hop in hops for document in hop)
    if any(document.text for document in told):
        return _retrieved(turn, tuple(document for document in told if document.text))
    ways: tuple[Callable[[Turn, Sequence[Context]], Found], ...] = (
        _artifacts,
        _passing,
        _variables,
        _results,
        _prompt,
    )
    for way in ways:
        found = way(turn, told)
        if found.contexts:
            return found
    return Found(bare=len(told))


def _ranked(documents: Sequence[Context], *, hop: int = 0, query: str | None = None) -> tuple[Context, ...]:
    return tuple(replace(d, rank=rank, hop=hop, query=query) for rank, d in enumerate(documents))


def _hops(turn: Turn) -> Iterator[tuple[Context, ...]]:
    """The documents of each outermost retrieval; two instrumentors' views of one retrieval are one hop."""
    seen: list[tuple[Node, ParsedSpan]] = []
    hop = -1
    for node, sight in turn.outermost("retrieval"):
        if not any(_same(node, sight, other, known) for other, known in seen):
            hop += 1
        seen.append((node, sight))
        documents = _best(node, sight)
        query = sight.query if sight.query and sight.query != turn.question else None
        yield _ranked(documents, hop=max(hop, 0), query=query)


def _same(node: Node, sight: ParsedSpan, other: Node, known: ParsedSpan) -> bool:
    overlap = node.span.start <= other.span.end and other.span.start <= node.span.end
    return overlap and sight.dialect != known.dialect and sight.query == known.query


def _best(node: Node, sight: ParsedSpan) -> tuple[Context, ...]:
    """A retrieval's own documents, else those of the retrieval inside it."""
    inner = [n.sight for n in node.below() if n.sight and n.sight.kind == "retrieval"]
    having = [s.documents for s in (sight, *inner) if any(document.text for document in s.documents)]
    return having[0] if having else next((s.documents for s in (sight, *inner) if s.documents), ())


def _retrieved(turn: Turn, documents: tuple[Context, ...]) -> Found:
    if any(document.id is None or document.score is None for document in documents):
        documents = merged(documents, _known(turn))
    reranked = next(
        (s.documents for _, s in reversed(turn.seen("rerank")) if any(d.text for d in s.documents)), ()
    )
    reranked = _ranked(merged(tuple(document for document in reranked if document.text), documents))
    return Found(contexts=documents, stages=_stages(turn), reranked=reranked)


def _known(turn: Turn) -> Iterator[Context]:
    """Documents that other spans mention: retrievals seen by another instrumentor, payloads of steps."""
    for _, sight in turn.seen("retrieval", "rerank", "chain", "tool", "agent"):
        yield from sight.documents
        for payload in sight.passing:
            yield from documents_in(payload)


def _stages(turn: Turn) -> tuple[Stage, ...]:
    outer = {document.text for _, sight in turn.outermost("retrieval") for document in sight.documents}
    return tuple(
        Stage(name=node.span.name, query=sight.query, contexts=_ranked(sight.documents))
        for node, sight in turn.seen("retrieval")
        if "retrieval" in turn.above[id(node)]
        and any(document.text for document in sight.documents)
        and {document.text for document in sight.documents} != outer
    )


def _passing(turn: Turn, told: Sequence[Context]) -> Found:
    """A step that returned a list of documents, where no retriever was seen."""
    for _, sight in turn.seen("chain"):
        for payload in reversed(sight.passing):
            documents = unique(document for document in documents_in(payload) if document.text)
            if documents:
                return Found(contexts=_ranked(documents), note="documents taken from the payload of a step")
    for _, sight in turn.seen("chain"):
        for payload in sight.passing:
            if fields := fields_with_passages(payload):
                return Found(contexts=_ranked(fields), note="documents taken from the fields of a step")
    return Found()


def _variables(turn: Turn, told: Sequence[Context]) -> Found:
    for _, sight in turn.seen("llm", "prompt", "chain"):
        for name, text in sight.variables.items():
            if _VARIABLE.match(name) and text.strip():
                return _split(text, told, note=f"documents taken from the prompt variable {name!r}")
    return Found()


def _artifacts(turn: Turn, told: Sequence[Context]) -> Found:
    """Tools that returned documents as such."""
    contexts: list[Context] = []
    for hop, (_, sight) in enumerate(turn.outermost("tool")):
        documents = [document for document in documents_in(sight.result) if document.text]
        contexts.extend(_ranked(documents, hop=hop))
    note = "documents taken from the results of tools"
    return Found(contexts=unique(contexts), source="tool", note=note) if contexts else Found()


def _results(turn: Turn, told: Sequence[Context]) -> Found:
    """Texts that tools returned which look like retrieval: with one inside, or by name."""
    contexts: list[Context] = []
    for hop, (node, sight) in enumerate(turn.outermost("tool")):
        documents: list[Context] = []
        inside = [n.sight for n in node.below() if n.sight and n.sight.kind == "retrieval"]
        documents.extend(() if inside else listed_in(sight.result))
        if not documents and (inside or _RETRIEVING.search(sight.tool)):
            count = sum(len(retrieval.documents) for retrieval in inside)
            known = [document for retrieval in inside for document in retrieval.documents]
            text = result_in(sight.result)
            documents = [Context(text=part) for part in parts_of(text)] if not count else []
            documents = documents or list(_split(text, known, count=count).contexts)
        query = next((retrieval.query for retrieval in inside if retrieval.query), None)
        contexts.extend(_ranked(_identified(documents, told), hop=hop, query=query))
    note = "documents taken from the results of tools"
    return Found(contexts=unique(contexts), source="tool", note=note) if contexts else Found()


def _prompt(turn: Turn, told: Sequence[Context]) -> Found:
    """The passages in a prompt; a tool's message in an agent's."""
    for message in turn.messages:
        block = context_block(message.text) if message.role != "tool" else ""
        if block:
            return replace(_split(block, told, note="documents taken from the prompt"), guessed=True)
    return Found()


def _split(text: str, told: Sequence[Context], *, note: str = "", count: int | None = None) -> Found:
    """Passages of a joined text; with ids and scores where as many are told."""
    passages = split_passages(text, len(told) if count is None else count)
    contexts = tuple(Context(text=passage) for passage in passages)
    if told and len(contexts) != len(told):
        note += f", which could not be split into the {len(told)} that were retrieved"
    return Found(contexts=_ranked(_identified(contexts, told)), note=note)


def _identified(contexts: Sequence[Context], told: Sequence[Context]) -> list[Context]:
    """The same contexts with ids and scores that are told in the same order, where there are as many."""
    if len(contexts) != len(told) or any(document.text for document in told):
        return list(contexts)
    return [
        replace(c, id=c.id if c.id is not None else t.id, score=c.score if c.score is not None else t.score)
        for c, t in zip(contexts, told, strict=True)
    ]
