"""Where a turn's documents hide, in the order in which they are believed.

A mark by hand; what retrievers returned (with ids and scores out of metadata); documents that tools returned
as such; a step's list of documents; prompt variables; other results of tools; the prompt itself. What stands
in another place than the first one counts too where the answer's prompt shows it: a page from the web beside
a retriever's passages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from steelyard.record import Context, ContextsSource, Stage
from steelyard.recording import unique
from steelyard.recording.provenance import (
    context_block,
    find_passages,
    finds_nothing,
    is_action,
    is_search,
    passages_of,
    sentence,
)
from steelyard.recording.reading import Message
from steelyard_opentelemetry.building._turn import Turn
from steelyard_opentelemetry.spans._documents import documents_in, merged
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._payload import result_in
from steelyard_opentelemetry.spans._results import is_failure, is_long, listed, telling
from steelyard_opentelemetry.spans._rows import (
    fenced_rows,
    lists_under_names,
    passages_in_text,
    rows_under_names,
    texts_under_names,
)
from steelyard_opentelemetry.spans._tree import Node

_VARIABLE = re.compile(
    r"^(?:context|contexts|context_str|documents?|docs|sources?|summaries|passages?|chunks|knowledge|retrieved\w*)$",
    re.IGNORECASE,
)
_RUNNABLE = re.compile(r"\s{0,8}\w{1,40}=\w{0,40}Runnable\w{0,40}\(")
_FROM_TOOLS = "documents taken from the results of tools"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The documents of a turn."""

    contexts: tuple[Context, ...] = ()
    """With their texts, best first within each hop."""
    beside: tuple[Context, ...] = ()
    """Passages from other places; they count where the answer's prompt shows them."""
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
    # Kept on the turn: several readers ask for it, and matching is what takes the time.
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
        found = _retrieved(turn, tuple(document for document in told if document.text))
        return replace(found, beside=_beside(turn, found.contexts, told))
    # In order of trust; the prompt comes last, for there everything else stands too.
    ways: tuple[Callable[[Turn, Sequence[Context]], Found], ...] = (
        _artifacts,
        _passing,
        _rows,
        _variables,
        _results,
        _tool_messages,
        _prompt,
    )
    for way in ways:
        found = way(turn, told)
        if found.contexts:
            return found if way is _prompt else replace(found, beside=_beside(turn, found.contexts, told))
    return Found(bare=len(told))


def _beside(turn: Turn, found: Sequence[Context], told: Sequence[Context]) -> tuple[Context, ...]:
    """Everything that steps and tools brought, whatever was found elsewhere."""
    steps = (document for _, lists in _lists_of_steps(turn) for document in lists)
    tools = (*_artifacts(turn, told).contexts, *_results(turn, told, beside=True).contexts)
    brought = (*steps, *tools, *_tool_messages(turn, told).contexts)
    return unique((*brought, *_rows_of_steps(turn, (*found, *brought))))


def _rows_of_steps(turn: Turn, known: Sequence[Context] = ()) -> list[Context]:
    """What steps keep under a name of passages, lists before texts; no text made of known passages."""
    payloads = [payload for _, parsed in turn.seen("chain", "agent") for payload in parsed.passing]
    rows = unique(row for payload in payloads for row in rows_under_names(payload))
    parts = [one.text for one in (*known, *rows)]
    texts = dict.fromkeys(text for payload in payloads for text in texts_under_names(payload))
    # A text that is made of known passages would count each of them a second time.
    fresh = [text for text in texts if not any(one.found for one in find_passages(parts, [text]))]
    return [*rows, *(passage for text in fresh for passage in passages_in_text(text))]


def _ranked(documents: Sequence[Context], *, hop: int = 0, query: str | None = None) -> tuple[Context, ...]:
    return tuple(replace(d, rank=rank, hop=hop, query=query) for rank, d in enumerate(documents))


def _hops(turn: Turn) -> Iterator[tuple[Context, ...]]:
    """The documents of each outermost retrieval; two instrumentors' views of one retrieval are one hop."""
    last: dict[str, tuple[Node, ParsedSpan]] = {}
    hop = -1
    for node, parsed in turn.outermost("retrieval"):
        known = last.get(parsed.query)
        if known is None or not _same(node, parsed, *known):
            hop += 1
        last[parsed.query] = (node, parsed)
        # The question itself is not noted as a query, since it says nothing more.
        query = parsed.query if parsed.query and parsed.query != turn.question else None
        yield _ranked(_best(node, parsed), hop=max(hop, 0), query=query)


def _same(node: Node, parsed: ParsedSpan, other: Node, known: ParsedSpan) -> bool:
    overlap = node.span.start <= other.span.end and other.span.start <= node.span.end
    # At the same time and by another instrumentor: one after the other they are two look-ups.
    return overlap and parsed.dialect != known.dialect


def _best(node: Node, parsed: ParsedSpan) -> tuple[Context, ...]:
    """A retrieval's own documents, else those of the retrieval inside it."""
    inner = [n.parsed for n in node.below() if n.parsed and n.parsed.kind == "retrieval"]
    having = [s.documents for s in (parsed, *inner) if any(document.text for document in s.documents)]
    # Ids without texts are better than nothing: a tool's message may have the texts to them.
    return having[0] if having else next((s.documents for s in (parsed, *inner) if s.documents), ())


def _retrieved(turn: Turn, documents: tuple[Context, ...]) -> Found:
    # Merged only where something is missing, since payloads of all steps are gone through for it.
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
        # A stage that returned the same as the whole retrieval would only repeat it.
        and {document.text for document in parsed.documents} != outer
    )


def _lists_of_steps(turn: Turn) -> Iterator[tuple[str, tuple[Context, ...]]]:
    """What steps passed on: documents as such, or texts in a field that is named for passages."""
    for node, parsed in turn.seen("chain", "agent", "llm"):
        if (
            parsed.passing
            and parsed.kind != "llm"
            and is_search(node.span.name)
            and (rows := listed(parsed.passing[-1]))
        ):
            yield "output", rows
            continue
        # The last payload first: it is the step's output, those before it went in.
        for payload in reversed(parsed.passing):
            documents = tuple(document for document in documents_in(payload) if document.text)
            if documents:
                yield "payload", documents
            elif fields := lists_under_names(payload):
                yield "fields", fields


def _passing(turn: Turn, told: Sequence[Context]) -> Found:
    """A step that returned a list of documents, where no retriever was seen."""
    found = sorted(_lists_of_steps(turn), key=lambda step: step[0] != "payload")
    for place, documents in found:
        return Found(contexts=_ranked(unique(documents)), note=f"documents taken from the {place} of a step")
    return Found()


def _variables(turn: Turn, told: Sequence[Context]) -> Found:
    for _, parsed in turn.seen("llm", "prompt", "chain"):
        for name, text in parsed.variables.items():
            if _VARIABLE.match(name) and text.strip() and not _RUNNABLE.match(text):
                return _split(text, told, note=f"documents taken from the prompt variable {name!r}")
    return Found()


def _artifacts(turn: Turn, told: Sequence[Context]) -> Found:
    """Tools that returned documents as such."""
    contexts: list[Context] = []
    for hop, (_, parsed) in enumerate(turn.outermost("tool")):
        documents = [document for document in documents_in(parsed.result) if document.text]
        contexts.extend(_ranked(documents, hop=hop))
    return Found(contexts=unique(contexts), source="tool", note=_FROM_TOOLS) if contexts else Found()


def _results(turn: Turn, told: Sequence[Context], *, beside: bool = False) -> Found:
    """What tools returned that looks like retrieval: with one inside, by name, or because it is a list.

    Beside documents that were found elsewhere, tools with a retrieval inside bring nothing new.
    """
    contexts: list[Context] = []
    for hop, (node, parsed) in enumerate(turn.outermost("tool")):
        inside = [n.parsed for n in node.below() if n.parsed and n.parsed.kind == "retrieval"]
        if (beside and inside) or node.span.failed:
            continue
        found = (not inside and listed(parsed.result)) or _in_text(parsed, inside)
        query = next((retrieval.query for retrieval in inside if retrieval.query), None)
        documents = _without_replies(node, found)
        contexts.extend(_ranked(_identified(documents, told), hop=hop, query=query))
    return Found(contexts=unique(contexts), source="tool", note=_FROM_TOOLS) if contexts else Found()


def _in_text(tool: ParsedSpan, inside: Sequence[ParsedSpan]) -> tuple[Context, ...]:
    """The passages in a tool's text, where a retrieval is inside or its name says that it searches."""
    if not inside and not is_search(tool.tool):
        return ()
    known = [document for retrieval in inside for document in retrieval.documents]
    text = result_in(tool.result)
    if is_failure(text) or finds_nothing(text):
        return ()
    found = _split(text, known, count=len(known)).contexts
    # A table of figures is one passage, which its rows are not.
    if not known and len(found) > 1 and not any(is_long(one.text) for one in found):
        return (Context(text=text.strip()),)  # rows of a table rather than passages
    return found


def _without_replies(node: Node, documents: Sequence[Context]) -> Sequence[Context]:
    """The passages in a tool's result that are not what a model below the tool said."""
    # A model below a tool (a sub-agent) answers; what it says is not a source.
    said = {n.parsed.answer.strip() for n in node.below() if n.parsed and n.parsed.kind == "llm"}
    return [one for one in documents if one.text.strip() not in said] if said else documents


def _tool_messages(turn: Turn, told: Sequence[Context]) -> Found:
    """What tools returned, out of the prompts of the answer, where no span of the tools was seen."""
    if any(parsed.result is not None for _, parsed in turn.seen("tool")):
        return Found()
    contexts: list[Context] = []
    doubtful: dict[str, None] = {}
    for message in _returned(turn):
        brought = listed(message.result) or telling(passages_of(message.text))
        contexts.extend(brought)
        is_text = len(brought) == 1 and brought[0].text == message.text
        if is_text and message.tool and not is_search(message.tool):
            doubtful[message.tool] = None
    found = unique(contexts)
    note = "documents taken from messages of tools in the prompt"
    if doubtful:
        note += f"; whether they search is not known of {', '.join(map(repr, doubtful))}"
    return Found(contexts=_ranked(found), source="tool", note=note) if found else Found()


def _returned(turn: Turn) -> Iterator[Message]:
    """What tools returned after the user's last words: what stands before belongs to earlier turns.

    Tools that act bring no passages, nor do those that failed or found nothing.
    """
    for _, parsed in turn.seen("llm"):
        # A thread's earlier tool messages were answered before the user spoke last.
        last = max((at for at, m in enumerate(parsed.messages) if m.role == "user"), default=-1)
        for message in parsed.messages[last + 1 :]:
            is_told = message.role == "tool" and message.text
            if is_told and not (
                is_action(message.tool) or is_failure(message.text) or finds_nothing(message.text)
            ):
                yield message


def _rows(turn: Turn, told: Sequence[Context]) -> Found:
    """What steps keep under a name of passages, as far as the answer's prompt shows it."""
    rows = _rows_of_steps(turn)
    sightings = find_passages([row.text for row in rows], [message.text for message in turn.messages])
    shown = [row for row, sighting in zip(rows, sightings, strict=True) if sighting.found]
    note = "documents taken from what a step keeps under a name for passages"
    return Found(contexts=_ranked(shown), note=note, guessed=True) if shown else Found()


def _prompt(turn: Turn, told: Sequence[Context]) -> Found:
    """The passages in the prompt of the answer: beside the question, else in the instructions.

    Earlier messages of the user hold what earlier questions were answered from, and instructions examples.
    """
    said = [message for message in turn.messages if message.role == "user"][::-1]
    instructions = [message for message in turn.messages if message.role == "system"]
    for message in (*said[:1], *instructions, *said[1:]):
        if rows := fenced_rows(message.text):
            return Found(contexts=_ranked(rows), note=sentence("contexts_guessed"), guessed=True)
        block = context_block(message.text)
        if block:
            return replace(_split(block, told, note=sentence("contexts_guessed")), guessed=True)
    return Found()


def _split(text: str, told: Sequence[Context], *, note: str = "", count: int | None = None) -> Found:
    """Passages of a joined text; with ids and scores where as many are told."""
    contexts = passages_of(text)
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
