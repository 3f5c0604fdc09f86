"""Why a trace gives no Record, and which switch to turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steelyard_opentelemetry._contexts import Found, find_contexts
from steelyard_opentelemetry._turn import Turn
from steelyard_opentelemetry.dialects import OpenInference, advice_of, content_switch

Cause = Literal[
    "content_off",
    "attributes_dropped",
    "unreadable",
    "documents_without_text",
    "no_documents",
    "no_answer",
    "no_question",
    "unlinked",
    "helper_call",
    "no_retrieval",
    "no_llm_spans",
    "orphan",
]

ADVICE: dict[Cause, str] = {
    "content_off": "turn on the instrumentor's switch for content",
    "attributes_dropped": "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT (the default is 128; the oldest go first)",
    "unreadable": (
        "JSON was cut or is not JSON: raise or unset OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT and "
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
    ),
    "documents_without_text": (
        "the retriever's span tells ids and scores only, and no prompt was recorded that could hold the "
        "texts: add an instrumentor of the model client (opentelemetry-instrumentation-genai-openai or its "
        "like) with content, below the same span; or set steelyard.contexts on a span of the turn"
    ),
    "no_documents": (
        "something was retrieved and no document is told; set steelyard.contexts on a span of the turn"
    ),
    "no_answer": (
        "no model's reply is in the trace: instrument the model client too, let streams run to their end, "
        "or set steelyard.answer on a span of the turn"
    ),
    "unlinked": (
        "something was retrieved, and no model call shares its trace. If there is one in a trace of its own, "
        "open one span around both, set session.id or gen_ai.conversation.id on both, link one span to the "
        "other, or give both the same steelyard.turn; what only has like texts is never joined. If there is "
        "none, instrument the model client too"
    ),
    "helper_call": (
        "the call grades, routes, ranks or writes a query for a turn; nothing is to be done, unless it is a "
        "turn: then set steelyard.question, steelyard.contexts and steelyard.answer on a span of it"
    ),
    "no_question": "no question is in the trace; set steelyard.question on a span of the turn",
    "no_retrieval": (
        "where nothing was retrieved, this is not a RAG turn; where something was, the spans do not tell it: "
        "instrument the retriever or set steelyard.contexts on a span of the turn"
    ),
    "no_llm_spans": (
        "no span of a known dialect: install openinference-instrumentation-langchain, -llama-index or "
        "-openai, an OpenLLMetry or official GenAI instrumentor, or set steelyard.question, "
        "steelyard.contexts and steelyard.answer on a span"
    ),
    "orphan": (
        "the spans above were lost or never ended; if the trace gives no record at all, let the exporter "
        "send every span, and look whether streams are read to their end"
    ),
}
"""What to do about each cause."""

_WHAT: dict[Cause, str] = {
    "content_off": "the instrumentor left questions, documents and answers out",
    "attributes_dropped": "the SDK dropped attributes that hold the documents, the question or the answer",
    "unreadable": "attributes that should be JSON could not be read",
    "documents_without_text": "documents are told by id and score, without their texts",
    "no_documents": "a retrieval is there, and its documents are not",
    "no_answer": "there is no answer",
    "unlinked": "what was retrieved stands apart from any model call",
    "helper_call": "this is a step of a turn, not a turn",
    "no_question": "there is no question",
    "no_retrieval": "no retrieval was seen",
    "no_llm_spans": "there is no LLM work in it",
    "orphan": "these spans hold nothing of a turn, and what they belonged to is not there",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """Why a trace, or a part of one, gives no Record."""

    trace_id: str
    """The trace."""
    span_id: str
    """The span that would have stood for the turn."""
    span: str
    """Its name."""
    cause: Cause
    """A short stable word, used in counts."""
    advice: str
    """Which switch to turn."""
    also: tuple[str, ...] = ()
    """Other traces that hold parts of the same turn."""

    def __str__(self) -> str:
        return f"{self.trace_id}  {self.cause}: {_WHAT[self.cause]} ({self.span}); {self.advice}"


def diagnose(turn: Turn, found: Found | None = None) -> Diagnosis:
    """Say why a candidate is not a turn that can be judged."""
    cause, switch = _cause(turn, find_contexts(turn) if found is None else found)
    span = turn.root.span
    advice = (switch if cause == "content_off" else "") or ADVICE[cause]
    if cause in ("no_answer", "documents_without_text"):
        spoken = {node.parsed.dialect for node in turn.nodes if node.parsed}
        advice = "; ".join((advice, *advice_of(spoken, cause)))
    return Diagnosis(
        trace_id=span.trace_id,
        span_id=span.span_id,
        span=span.name,
        cause=cause,
        advice=advice,
        also=turn.joined,
    )


def _cause(turn: Turn, found: Found) -> tuple[Cause, str]:
    spoken = [node.parsed for node in turn.nodes if node.parsed]
    if not spoken:
        return "no_llm_spans", ""
    missing = not (found.contexts and turn.question and turn.answer)
    left_out = [(node.span, node.parsed) for node in turn.nodes if node.parsed and node.parsed.hidden]
    hidden = [content_switch(parsed.dialect, span.scope) for span, parsed in left_out]
    if not found.contexts and (withheld := [(n.span, s) for n, s in turn.seen("tool") if s.hidden]):
        span, parsed = withheld[0]
        return "content_off", content_switch(parsed.dialect, span.scope)[1]
    # OpenInference says what it hid; the others just leave it out, which may have another reason.
    told = next((switch for dialect, switch in hidden if dialect == OpenInference.name), None)
    if missing and hidden and (told or not _told(turn, found)):
        return "content_off", told or hidden[0][1]
    if missing and any(node.span.dropped for node in turn.nodes if node.parsed):
        return "attributes_dropped", ""
    if missing and any(parsed.broken for parsed in spoken):
        return "unreadable", ""
    return _lack(turn, found), ""


def _told(turn: Turn, found: Found) -> bool:
    """Whether at least the other part of the content is there, so that it was not switched off as a whole."""
    return bool(found.contexts or found.bare or (turn.answer and turn.prompts))


def _lack(turn: Turn, found: Found) -> Cause:
    if not found.contexts:
        if found.bare:
            return "documents_without_text"
        if turn.retrieves:
            return "no_documents"
        lost = turn.root.span.parent_id is not None and not turn.prompts and not turn.answer
        return "orphan" if lost else "no_retrieval"
    if not turn.answer and not turn.seen("llm") and _is_retrieval(turn):
        return "unlinked"
    if not turn.question:
        return "no_question"
    return "helper_call" if turn.answer and (found.guessed or turn.seen("llm")) else "no_answer"


def _is_retrieval(turn: Turn) -> bool:
    """Whether the piece is a retrieval by itself, with no step of a turn around it."""
    return turn.root.parsed is None or turn.root.parsed.kind in ("retrieval", "rerank")
