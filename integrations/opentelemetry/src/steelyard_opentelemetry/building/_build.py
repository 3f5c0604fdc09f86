"""From a turn to its Record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from typing import Any

from steelyard.record import Context, Record, Status, Timings, TraceRef
from steelyard.recording import unique
from steelyard.recording.provenance import Provenance, find_passages, sentence, trace_provenance
from steelyard_opentelemetry.building._contexts import Found
from steelyard_opentelemetry.building._identity import SESSION, USER
from steelyard_opentelemetry.building._retries import earlier_answer
from steelyard_opentelemetry.building._turn import Turn
from steelyard_opentelemetry.spans._span import Span
from steelyard_opentelemetry.spans._tree import Node

_CANCELLED = re.compile(r"\b(?:CancelledError|GeneratorExit|KeyboardInterrupt)\b")
_INTERRUPTED = re.compile(r"\b(?:GraphInterrupt|NodeInterrupt)\b")
_STEP = re.compile(r"(?m)^\s{0,8}(?:Thought|Action|Action Input|Observation):|<code>|```")
_HEADER = re.compile(r"[A-Za-z_][\w.\-]{0,60}: .{1,2000}|Source \d{1,4}:|-{2,80}")
"""A line that frameworks put above a passage: a field of its metadata, a number, a rule."""
_SHOWN_OBJECT = re.compile(r"[\[(]{0,2}<?[A-Z]\w{1,60}\(\w{1,60}=")
_LAST_OF_SEVERAL = (
    "no span tells what the user was given: of several replies to these passages the last one is taken; set "
    "the output of the span around them, or steelyard.answer"
)
_ASKED_AGAIN = (
    "the question was asked again with an answer that was found wanting, which may be a record of its own: a "
    "span around all tries, with the question and the last answer, holds them together"
)
_EMPTY = "Empty Response"
_NANO = 1e9
_TELLING = 4
"""Words that a reply must have to be told by them."""
_MOSTLY = 0.5
_WHOLLY = 0.95
"""A passage that answers a question shares many of its words, so that a query accounts for its like alone."""


def record_of(turn: Turn, found: Found) -> Record:
    """The Record of a turn whose documents were found.

    The same spans give the same id again, so that what is read twice is scored once.
    """
    span = turn.root.span
    status, error = _status(turn)
    traced = _traced(turn, found)
    dropped = sum(node.span.dropped for node, _ in turn.parsed)
    reference = next((parsed.reference for _, parsed in turn.seen("turn") if parsed.reference), None)
    return Record(
        id=f"{span.trace_id}-{span.span_id}",
        question=turn.question,
        standalone_question=turn.standalone or None,
        contexts=traced.contexts,
        contexts_source=traced.contexts_source,
        retrieved=traced.retrieved,
        stages=found.stages,
        answer="" if status == "error" else turn.answer,
        reference=reference,
        status=status,
        error=error,
        trace=TraceRef(
            trace_id=span.trace_id, span_id=span.span_id, sampled=span.sampled, framework="opentelemetry"
        ),
        timings=_timings(turn),
        tags=_tags(span),
        metadata=_metadata(turn, traced.contexts),
        notes=(*_notes(turn, found, dropped), *traced.notes),
        truncated=_truncated(turn, traced, dropped),
    )


def _traced(turn: Turn, found: Found) -> Provenance:
    """What the answer is judged by: the passages that the calls behind it were shown."""
    main = unique((*found.reranked, *found.contexts))
    if found.given:
        return Provenance(
            contexts=main, retrieved=(), contexts_source=found.source, calls=turn.behind, notes=()
        )
    main = unique((*main, *_behind(turn, found, main)))
    traced = trace_provenance(
        (*main, *_new(turn, found, main)),
        turn.calls,
        answer=turn.answer,
        question=turn.question,
        queries=turn.queries,
        source=found.source,
    )
    own = {context.text for context in main}
    if traced.contexts_source == "in_prompt":
        retrieved = _of(own, traced.retrieved)
        if traced.retrieved and _has_cut_prompt(turn, traced):
            # What a prompt that was cut does not show may have stood in the rest of it.
            every = tuple(replace(one, seen=None) for one in retrieved)
            return replace(traced, contexts=every, retrieved=(), contexts_source=found.source)
        same = [context.text for context in traced.contexts] == [context.text for context in retrieved]
        return replace(traced, retrieved=() if same else retrieved)
    if found.reranked:
        return replace(traced, contexts=found.reranked, retrieved=unique(found.contexts))
    return replace(traced, contexts=_of(own, traced.contexts))


def _of(own: set[str], contexts: Iterable[Context]) -> tuple[Context, ...]:
    """The passages that were retrieved themselves, without those that are only in them or around them."""
    return tuple(context for context in contexts if context.text in own)


def _behind(turn: Turn, found: Found, main: Sequence[Context]) -> tuple[Context, ...]:
    """What was retrieved inside a retrieval, where that hands on a model's reply in place of it.

    A reply that stands in a passage word for word was cut out of it, and is one itself.
    """
    inside = tuple(context for stage in found.stages for context in stage.contexts)
    replies = [text for text in turn.replies_within_retrieval if len(text.split()) >= _TELLING]
    own = [reply for reply in replies if not any(reply in context.text for context in inside)]
    return inside if any(reply in context.text for reply in own for context in main) else ()


def _has_cut_prompt(turn: Turn, traced: Provenance) -> bool:
    return turn.cut.length > 0 and any(
        turn.cut.ends(text) for at in traced.calls.all for text in turn.calls[at].prompts
    )


def _truncated(turn: Turn, traced: Provenance, dropped: int) -> tuple[str, ...]:
    """The fields that lack something, because attributes were dropped or cut before they came here."""
    cut = turn.cut
    parts = {
        "question": cut.ends(turn.question),
        "contexts": dropped > 0 or any(cut.ends(context.text) for context in traced.contexts),
        "answer": cut.ends(turn.answer),
    }
    return tuple(name for name, lacks in parts.items() if lacks)


def _new(turn: Turn, found: Found, main: Sequence[Context]) -> tuple[Context, ...]:
    """The passages from other places that are neither told already nor written by a model of this turn."""
    written = [text for call in turn.calls for text in call.replies]
    windows = [window for _, parsed in turn.seen("retrieval", "rerank") for window in parsed.windows]
    if windows and not found.given:
        return (*unique(windows), *_beside(turn, found, main, written))
    return _beside(turn, found, main, written)


def _beside(turn: Turn, found: Found, main: Sequence[Context], written: Sequence[str]) -> tuple[Context, ...]:
    known = {line.strip() for context in main for line in context.text.split("\n")}
    others = [context for context in found.beside if not _is_headed(context.text, known)]
    fresh = _without_overlap(others, turn.queries, least=_WHOLLY)
    return _without_overlap(fresh, [*(context.text for context in main), *written])


def _is_headed(text: str, known: Set[str]) -> bool:
    """Whether a text is lines of known passages below their metadata, as prompts show them.

    So are objects that hold passages, shown as text.
    """
    if known and _SHOWN_OBJECT.match(text):
        return True
    lines = [plain for line in text.split("\n") if (plain := line.strip())]
    fresh = [line for line in lines if line not in known]
    return len(fresh) < len(lines) and all(map(_HEADER.fullmatch, fresh))


def _without_overlap(
    others: Iterable[Context], known: Sequence[str], *, least: float = _MOSTLY
) -> tuple[Context, ...]:
    """Passages from several places, without those whose words mostly stand in known texts, in another cut."""
    seen = set(known)
    left = [context for context in others if context.text not in seen]
    sightings = find_passages([context.text for context in left], known) if known else ()
    if not sightings:
        return tuple(left)
    pairs = zip(left, sightings, strict=True)
    return tuple(context for context, sighting in pairs if sighting.seen < least)


def failure(turn: Turn) -> str:
    """What went wrong in a turn as a whole, as `Type: message`; nothing where it went well."""
    if turn.root.span.failed:
        return _error(turn.root.span)
    if turn.answer == _EMPTY:
        # LlamaIndex swallows an error of the model and answers with this text.
        return next((_error(node.span) for node in turn.nodes if node.span.failed), "")
    return ""


def _status(turn: Turn) -> tuple[Status, str | None]:
    error = failure(turn)
    if not error:
        interrupted = any(_INTERRUPTED.search(_error(n.span)) for n in turn.nodes if n.span.failed)
        if interrupted and not turn.answer:
            return "interrupted", None
        return ("truncated" if _is_cut_short(turn) else "ok"), None
    if _CANCELLED.search(error):
        return "cancelled", None
    return ("interrupted", None) if _INTERRUPTED.search(error) else ("error", error)


def _is_cut_short(turn: Turn) -> bool:
    """Whether the call that said the answer was cancelled: a stream that was not read to its end."""
    said = [node.span for node, parsed in turn.seen("llm") if parsed.answer.strip() == turn.answer.strip()]
    return bool(said) and all(span.failed and _CANCELLED.search(_error(span)) for span in said)


def _error(span: Span) -> str:
    for event in reversed(span.events):
        if event.name == "exception":
            kind = str(event.attributes.get("exception.type") or "Error").rpartition(".")[2]
            message = str(event.attributes.get("exception.message") or span.error).strip()
            return f"{kind}: {message}" if message else kind
    return span.error or str(span.attributes.get("error.type") or "Error")


def _timings(turn: Turn) -> Timings:
    span = turn.root.span
    start = min(node.span.start for node in turn.nodes) if turn.joined else span.start
    end = max(span.end, *(node.span.end for node, _ in turn.seen("llm")), span.start)
    return Timings(
        started_at=start / _NANO,
        total=(end - start) / _NANO,
        retrieval=_covered(node for node, _ in turn.seen("retrieval")),
        generation=_covered(node for node, _ in turn.seen("llm")),
    )


def _covered(nodes: Iterable[Node]) -> float | None:
    """Seconds in which at least one of the spans ran: nested and doubly instrumented ones count once."""
    total = reached = 0
    found = False
    for node in sorted(nodes, key=lambda node: node.span.start):
        found = True
        total += max(0, node.span.end - max(node.span.start, reached))
        reached = max(reached, node.span.end)
    return total / _NANO if found else None


def _tags(span: Span) -> tuple[str, ...]:
    tags = span.attributes.get("tag.tags")
    return tuple(str(tag) for tag in tags) if isinstance(tags, (list, tuple)) else ()


def _metadata(turn: Turn, contexts: Sequence[Context]) -> dict[str, Any]:
    """What helps to find and to group turns later; no content."""
    attributes = [node.span.attributes for node in turn.nodes]
    found = {
        "dialects": sorted({parsed.dialect for _, parsed in turn.parsed}),
        "span": turn.root.span.name,
        "service": turn.root.span.service,
        "session": _first(attributes, SESSION),
        "user": _first(attributes, USER),
        "traces": list(turn.joined),
        "retrieval_span": _retrieval_span(turn, contexts),
        "model": _first(attributes, ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")),
    }
    return {name: value for name, value in found.items() if value}


def _retrieval_span(turn: Turn, contexts: Sequence[Context]) -> str:
    """The one span whose documents the contexts are, by text and position, so that each can be annotated."""
    found = turn.outermost("retrieval")
    if len(found) != 1 or not contexts:
        return ""
    node, parsed = found[0]
    texts = dict(enumerate(document.text for document in parsed.documents))
    same = all(context.rank is not None and texts.get(context.rank) == context.text for context in contexts)
    return node.span.span_id if same else ""


def _first(attributes: Sequence[Any], keys: Sequence[str]) -> str:
    for found in attributes:
        for key in keys:
            value = found.get(key)
            if value and isinstance(value, str):
                return value
    return ""


def _doubts(turn: Turn) -> Iterable[str]:
    """What the spans say that is not certain about the question."""
    asked = (parsed for _, parsed in turn.seen("llm") if turn.question in parsed.variables.values())
    return dict.fromkeys(parsed.doubt for parsed in asked if parsed.doubt)


def _has_other_answer(turn: Turn, found: Found) -> bool:
    """Whether no span tells the answer, and calls that were shown the passages said different things."""
    if not turn.is_reply_taken:
        return False
    others = [
        parsed
        for _, parsed in turn.answering
        if parsed.kind == "llm"
        and not parsed.arguments
        and not _STEP.search(parsed.answer)
        and len(parsed.answer.split()) >= _TELLING
        and parsed.answer.strip() not in turn.answer
        and turn.answer not in parsed.answer
    ]
    prompts = [message.text for parsed in others for message in parsed.messages]
    return any(one.found for one in find_passages([one.text for one in found.contexts], prompts))


def _is_lone_retry(turn: Turn) -> bool:
    """Whether a call by itself quotes an answer to the same question that was found wanting."""
    parsed = turn.root.parsed
    return parsed is not None and parsed.kind == "llm" and any(map(earlier_answer, turn.prompts))


def _notes(turn: Turn, found: Found, dropped: int) -> Iterable[str]:
    if found.note:
        yield found.note
    yield from (sentence(note) for note in turn.asked.notes)
    yield from _doubts(turn)
    if turn.is_call_assumed:
        yield sentence("answer_call_assumed")
    if _has_other_answer(turn, found):
        yield _LAST_OF_SEVERAL
    if not turn.joined and _is_lone_retry(turn):
        yield _ASKED_AGAIN
    if turn.joined:
        yield f"joined with what trace {', '.join(turn.joined)} holds of the same turn"
    yield from _losses(turn, dropped)
    if turn.root.is_orphan and turn.root.parsed and turn.root.parsed.kind == "llm":
        yield "the span above this turn never ended or was not seen"


def _losses(turn: Turn, dropped: int) -> Iterable[str]:
    """What of the spans' content did not come through."""
    if dropped:
        yield (
            f"the SDK dropped {dropped} attributes or events, so documents may be missing; "
            "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"
        )
    if turn.cut.length:
        yield (
            f"texts on the spans seem to be cut at {turn.cut.length} characters, so parts may be missing; "
            "raise or unset OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
        )
    broken = sorted({parsed.broken for _, parsed in turn.parsed if parsed.broken})
    if broken:
        yield f"some attributes could not be read: {', '.join(broken)}"
