"""From a turn to its Record, if one can be made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from steelyard.record import Context, Record, Status, Timings, TraceRef
from steelyard.recording.building import is_form, is_telling
from steelyard.recording.explaining import origins_of
from steelyard.recording.provenance import Origin, find_passages, is_intermediate_output, is_turn, sentence
from steelyard.recording.reading import is_question
from steelyard_opentelemetry._asked import asked_above
from steelyard_opentelemetry._evidence import FoundPassages, evidence_of, tells_search
from steelyard_opentelemetry._joining import TENANT, USER, first_named, session_of, told_of
from steelyard_opentelemetry._payload import loaded, squeezed
from steelyard_opentelemetry._span import Node, Span
from steelyard_opentelemetry._turn import EMPTY, Turn

_CANCELLED = re.compile(r"\b(?:CancelledError|GeneratorExit|KeyboardInterrupt)\b")
_INTERRUPTED = re.compile(r"\b(?:GraphInterrupt|NodeInterrupt)\b")
_LAST_OF_SEVERAL = (
    "no span tells what the user was given: of several replies to these passages the last one is taken; set "
    "the output of the span around them, or steelyard.answer"
)
_FORM = (
    "no span tells what of the model's form the user was given; set the output of the span around it, or "
    "steelyard.answer"
)
_ENGINE = "str_or_query_bundle"
"""The argument of every query engine; other steps of LlamaIndex are given a `query`."""
_NANO = 1e9


def record_of(turn: Turn, found: FoundPassages) -> Record:
    """The Record of a turn whose documents were found.

    The same spans give the same id again, so that what is read twice is scored once.
    """
    span = turn.root.span
    status, error = _status(turn)
    traced, tags = found.origin, span.attributes.get("tag.tags")
    dropped = sum(node.span.dropped for node, _ in turn.parsed)
    return Record(
        id=f"{span.trace_id}-{span.span_id}",
        question=turn.question,
        standalone_question=turn.asked.standalone or None,
        contexts=traced.contexts,
        contexts_source=traced.contexts_source,
        retrieved=traced.retrieved,
        stages=found.sources.look_ups.stages,
        answer="" if status == "error" else turn.answer,
        reference=turn.marked("reference"),
        status=status,
        error=error,
        trace=TraceRef(
            trace_id=span.trace_id, span_id=span.span_id, sampled=span.sampled, framework="opentelemetry"
        ),
        timings=_timings(turn),
        tags=tuple(map(str, tags)) if isinstance(tags, (list, tuple)) else (),
        session=session_of(turn),
        tenant=first_named(told_of(turn), TENANT),
        metadata=_metadata(turn, traced.contexts),
        origins=origins_of(turn.steps, turn.question, traced, turn.answer),
        notes=(*_notes(turn, found, dropped), *traced.notes),
        truncated=_truncated(turn, traced, dropped),
    )


def _truncated(turn: Turn, traced: Origin, dropped: int) -> tuple[str, ...]:
    """The fields that lack something, because attributes were dropped or cut before they came here."""
    cut = turn.cut
    parts = {
        "question": cut.ends(turn.question),
        "contexts": dropped > 0 or any(cut.ends(context.text) for context in traced.contexts),
        "answer": cut.ends(turn.answer),
    }
    return tuple(name for name, lacks in parts.items() if lacks)


def failure(turn: Turn) -> str:
    """What went wrong in a turn as a whole, as `Type: message`; nothing where it went well."""
    if turn.root.span.failed:
        return _error(turn.root.span)
    if turn.answer == EMPTY:
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


def _metadata(turn: Turn, contexts: Sequence[Context]) -> dict[str, Any]:
    """What helps to find and to group turns later; no content."""
    told = told_of(turn)
    found = {
        "dialects": sorted({parsed.dialect for _, parsed in turn.parsed}),
        "span": turn.root.span.name,
        "service": turn.root.span.service,
        "version": turn.root.span.version,
        "user": first_named(told, USER),
        "traces": list(turn.joined),
        "retrieval_span": _retrieval_span(turn, contexts),
        "model": first_named(told, ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")),
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


def _has_other_answer(turn: Turn, found: FoundPassages) -> bool:
    """Whether no span tells the answer, and calls that were shown the passages said different things."""
    if not turn.is_reply_taken:
        return False
    others = [
        parsed
        for _, parsed in turn.answering
        if parsed.kind == "llm"
        and not parsed.arguments
        and is_telling(parsed.answer)
        and parsed.answer.strip() not in turn.answer
        and turn.answer not in parsed.answer
    ]
    prompts = [message.text for parsed in others for message in parsed.messages]
    return any(one.found for one in find_passages([one.text for one in found.contexts], prompts))


def _notes(turn: Turn, found: FoundPassages, dropped: int) -> Iterable[str]:
    asked = turn.asked.notes
    if found.is_guessed and not (asked or turn.is_told or asked_above(turn, turn.question) == turn.question):
        # Whoever filled the passages in may have put words around the question too.
        asked = ("question_guessed",)
    yield from map(sentence, asked)
    if turn.is_call_assumed:
        yield sentence("answer_call_assumed")
    if _has_other_answer(turn, found):
        yield _LAST_OF_SEVERAL
    steps = turn.seen("chain", "agent", "turn")
    told = any(one.answer for _, one in steps) or bool(steps and not turn.is_reply_taken)
    if is_form(turn.answer, turn.prompts) and not told:
        yield _FORM
    if turn.joined:
        yield f"joined with what trace {', '.join(turn.joined)} holds of the same turn"
    yield from _losses(turn, dropped)


def _losses(turn: Turn, dropped: int) -> Iterable[str]:
    """What of the spans and their content did not come through."""
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
    root = turn.root
    if root.is_one_of_several or (root.is_orphan and root.parsed and root.parsed.kind == "llm"):
        yield "the span above this turn never ended or was not seen"


_GIVEN = "SummaryIndexRetriever"
_SYNTHESIS = re.compile(r"\.a?synthesize\Z|(?:Refine|Summarize|Accumulate|Generation)\.(?:task|workflow)\Z")
"""How instrumentors name LlamaIndex's response synthesizers."""
_RESULT = re.compile(r"\[RESULT\]\s{0,4}[\d.]+\s*\Z")
_EVALUATING = re.compile(
    r"\b(?:information|response|context)\b[\s\S]{0,120}?"
    r"\b(?:is supported by|in line with|(?:are|is) relevant to)\b",
    re.IGNORECASE,
)
_ASKED_WITH_ANSWER = re.compile(r"\n\s{0,8}(?:Response|Answer): ?\S")
"""What LlamaIndex asks an engine about an answer: the question, and the answer below it."""
_SETTING = re.compile(r"\b(?:setup|set up|generate|write)\b[^\n.]{0,60}\bquestions\b", re.IGNORECASE)
_HEAD = 2000
_ROW = (
    ("user_input", "question", "query", "input"),
    ("response", "answer", "actual_output", "generated_answer", "prediction"),
)
"""What a row of an evaluation holds: a question and its answer, under any of these names."""


def is_whole(turn: Turn) -> bool:
    """Whether both a retrieval and its answer, or the turn's end in an error, are in one piece."""
    if any(parsed.documents and parsed.answer for _, parsed in turn.seen("turn")):
        return True
    models = bool(turn.seen("llm"))
    found = evidence_of(turn)
    if not turn.retrieves and not turn.agentic:
        return bool(turn.answer) and (_is_known(found) or turn.found_nothing or _asks_engine(turn))
    if _formats(turn, found):
        return False
    if turn.answer or failure(turn):
        return True
    # A call below which only its tools ran is a step: the call that answers stands beside it.
    return turn.root.parsed is not None and turn.root.parsed.kind != "llm" and models


def _is_known(found: FoundPassages) -> bool:
    """Whether passages came into a turn, shown or not, that nobody had to guess."""
    return bool(found.contexts or found.origin.retrieved) and not found.is_guessed


def _formats(turn: Turn, found: FoundPassages) -> bool:
    """Whether this is a step that retrieved and formatted: what it came to is the context, not an answer."""
    if _only_searches(turn):
        return True
    if turn.seen("llm", "turn") or len(found.contexts) < 2:
        return False
    return all(context.text in turn.answer for context in found.contexts)


def _only_searches(turn: Turn) -> bool:
    """Whether all that models said below it was for a search: queries, or passages cut short.

    So it is below a retriever that answers nothing itself, and where each line is what a retriever was asked.
    """
    root = turn.root.parsed
    if root is not None and root.kind == "retrieval" and not root.answer:
        return bool(turn.seen("llm"))
    asked = set(map(squeezed, turn.queries)) - {squeezed(turn.question)}
    lines = [squeezed(line) for line in turn.answer.split("\n") if line.strip()]
    return bool(lines) and asked.issuperset(lines)


def is_judgeable(turn: Turn, found: FoundPassages) -> bool:
    """Whether a record can come of it.

    A failed turn needs a question; any other one question, answer and documents, be it that none was shown,
    or retrievals which told that they found nothing. A call that grades, routes or writes a query is not a
    turn of its own.
    """
    if failure(turn) and turn.question and (turn.retrieves or found.contexts):
        return True
    if not (turn.question and turn.answer) or _only_searches(turn):
        return False
    if not found.contexts and (turn.found_nothing or _asks_engine(turn) or turn.answer == EMPTY):
        return not _is_score(turn)
    return bool(found.contexts or found.origin.retrieved) and not _is_step(turn, found)


def _asks_engine(turn: Turn) -> bool:
    """Whether its root is a query engine of LlamaIndex, or an agent of it that called no tool."""
    span, root = turn.root.span, turn.root.parsed
    if "llama" in span.scope and span.name.endswith(("Agent.run", "Agent.workflow")):
        return not (turn.agentic or turn.retrieves)
    given = loaded(root.passing[0]) if root is not None and root.passing else None
    return isinstance(given, Mapping) and _ENGINE in given


def is_untold(turn: Turn, found: FoundPassages) -> bool:
    """Whether a question was answered, and what was looked up for it is on no span."""
    if not (turn.question and turn.answer) or _only_searches(turn) or _is_step(turn, found):
        return False
    return turn.retrieves or tells_search(turn)


def _is_step(turn: Turn, found: FoundPassages) -> bool:
    """Whether it formats, grades, indexes or evaluates for another turn."""
    is_part = _formats(turn, found) or is_helper(turn)
    return is_part or _is_indexing(turn, found) or is_asked_by_evaluator(turn)


def _is_indexing(turn: Turn, found: FoundPassages) -> bool:
    """Whether a model was asked about a document, without anybody's question: to describe it for an index."""
    if turn.retrieves or turn.agentic:
        return False
    if _SYNTHESIS.search(turn.root.span.name):
        # An index gives such a step each of its documents, with an instruction in place of a question.
        return not is_question(turn.question)
    return bool(found.contexts) and all(one.text in turn.question for one in found.contexts)


def is_asked_by_evaluator(turn: Turn) -> bool:
    """Whether an evaluator, or a maker of test questions, asks about given passages.

    Ragas and its like are given a question with its answer. LlamaIndex's evaluators and makers of questions
    put what they were given into a `SummaryIndex` and ask an engine over it. Users do the same, so that what
    was asked of the model and its reply have to agree: for a verdict, or for questions.
    """
    if _is_given_answer(turn):
        return True
    retrievals = turn.outermost("retrieval")
    if not retrievals or not all(_GIVEN in node.span.name for node, _ in retrievals):
        return False
    is_verdict = is_intermediate_output((turn.answer,)) or _RESULT.search(turn.answer)
    if is_verdict or _ASKED_WITH_ANSWER.search(turn.question):
        return any(_EVALUATING.search(text[:_HEAD]) for text in turn.prompts)
    lines = [line.rstrip() for line in turn.answer.split("\n") if line.strip()]
    return _SETTING.search(turn.question) is not None and all(map(is_question, lines))


def _is_given_answer(turn: Turn) -> bool:
    """Whether the root's input holds an answer beside the question, and its output none."""
    root = turn.root.parsed
    given = loaded(root.passing[0]) if root is not None and root.passing and not root.answer else None
    if not isinstance(given, Mapping):
        return False
    return all(
        any(isinstance(text := given.get(name), str) and text.strip() for name in names) for names in _ROW
    )


def is_helper(turn: Turn) -> bool:
    """Whether the turn is a call that grades, routes, ranks or writes a query for another one."""
    looked_up = turn.retrieves or turn.agentic or bool(turn.sources.documents) or turn.found_nothing
    return _is_score(turn) or not is_turn(
        turn.calls, answer=turn.answer, queries=turn.queries, retrieved=looked_up
    )


def _is_score(turn: Turn) -> bool:
    """Whether it only made a number of forms, whatever list it was given."""
    is_number = turn.answer.strip().replace(".", "", 1).isdigit() and not (turn.retrieves or turn.agentic)
    return is_number and not is_turn(turn.calls, answer=turn.answer)
