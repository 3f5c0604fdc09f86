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
from steelyard_opentelemetry._turn import Turn
from steelyard_opentelemetry.spans._documents import documents_in, merged
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._payload import result_in
from steelyard_opentelemetry.spans._prompt import context_block, split_passages
from steelyard_opentelemetry.spans._tree import Node

_VARIABLE = re.compile(
    r"^(?:context|contexts|context_str|documents?|docs|sources?|summaries|passages?|chunks|knowledge|retrieved\w*)$",
    re.IGNORECASE,
)
_RETRIEVING = re.compile(
    r"search|retriev|lookup|look_up|knowledge|docs?\b|document|wiki|\brag\b|query_engine|find_", re.IGNORECASE
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
    marked = [parsed.documents for _, parsed in turn.seen("turn") if parsed.documents]
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
    for node, parsed in turn.outermost("retrieval"):
        if not any(_same(node, parsed, other, known) for other, known in seen):
            hop += 1
        seen.append((node, parsed))
        documents = _best(node, parsed)
        query = parsed.query if parsed.query and parsed.query != turn.question else None
        yield _ranked(documents, hop=max(hop, 0), query=query)


def _same(node: Node, parsed: ParsedSpan, other: Node, known: ParsedSpan) -> bool:
    overlap = node.span.start <= other.span.end and other.span.start <= node.span.end
    return overlap and parsed.dialect != known.dialect and parsed.query == known.query


def _best(node: Node, parsed: ParsedSpan) -> tuple[Context, ...]:
    """A retrieval's own documents, else those of the retrieval inside it."""
    inner = [n.parsed for n in node.below() if n.parsed and n.parsed.kind == "retrieval"]
    having = [s.documents for s in (parsed, *inner) if any(document.text for document in s.documents)]
    return having[0] if having else next((s.documents for s in (parsed, *inner) if s.documents), ())


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
    for _, parsed in turn.seen("retrieval", "rerank", "chain", "tool", "agent"):
        yield from parsed.documents
        for payload in parsed.passing:
            yield from documents_in(payload)


def _stages(turn: Turn) -> tuple[Stage, ...]:
    outer = {document.text for _, parsed in turn.outermost("retrieval") for document in parsed.documents}
    return tuple(
        Stage(name=node.span.name, query=parsed.query, contexts=_ranked(parsed.documents))
        for node, parsed in turn.seen("retrieval")
        if "retrieval" in turn.above[id(node)]
        and any(document.text for document in parsed.documents)
        and {document.text for document in parsed.documents} != outer
    )


def _passing(turn: Turn, told: Sequence[Context]) -> Found:
    """A step that returned a list of documents, where no retriever was seen."""
    for _, parsed in turn.seen("chain"):
        for payload in reversed(parsed.passing):
            documents = unique(document for document in documents_in(payload) if document.text)
            if documents:
                return Found(contexts=_ranked(documents), note="documents taken from the payload of a step")
    return Found()


def _variables(turn: Turn, told: Sequence[Context]) -> Found:
    for _, parsed in turn.seen("llm", "prompt", "chain"):
        for name, text in parsed.variables.items():
            if _VARIABLE.match(name) and text.strip():
                return _split(text, told, note=f"documents taken from the prompt variable {name!r}")
    return Found()


def _artifacts(turn: Turn, told: Sequence[Context]) -> Found:
    """Tools that returned documents as such."""
    contexts: list[Context] = []
    for hop, (_, parsed) in enumerate(turn.outermost("tool")):
        documents = [document for document in documents_in(parsed.result) if document.text]
        contexts.extend(_ranked(documents, hop=hop))
    note = "documents taken from the results of tools"
    return Found(contexts=unique(contexts), source="tool", note=note) if contexts else Found()


def _results(turn: Turn, told: Sequence[Context]) -> Found:
    """Texts that tools returned which look like retrieval: with one inside, or by name."""
    contexts: list[Context] = []
    for hop, (node, parsed) in enumerate(turn.outermost("tool")):
        documents: list[Context] = []
        inside = [n.parsed for n in node.below() if n.parsed and n.parsed.kind == "retrieval"]
        if inside or _RETRIEVING.search(parsed.tool):
            count = sum(len(retrieval.documents) for retrieval in inside)
            known = [document for retrieval in inside for document in retrieval.documents]
            documents = list(_split(result_in(parsed.result), known, count=count).contexts)
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
