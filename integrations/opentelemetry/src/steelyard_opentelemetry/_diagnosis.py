"""Why a trace gives no Record, and which switch to turn."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from steelyard_opentelemetry._contexts import Found, find_contexts
from steelyard_opentelemetry._tree import Node
from steelyard_opentelemetry._turn import Turn
from steelyard_opentelemetry.dialects import adk, haystack, pydantic_ai, semantic_kernel, spring, vercel

__all__ = ["ADVICE", "Cause", "Diagnosis", "diagnose"]

Cause = Literal[
    "content_off",
    "attributes_dropped",
    "unreadable",
    "documents_without_text",
    "no_documents",
    "no_answer",
    "no_question",
    "no_retrieval",
    "no_llm_spans",
    "orphan",
]

_OPENLLMETRY = re.compile(r"opentelemetry\.instrumentation\.(?!genai\b)\w+(?<!_v2)$")
_CAPTURE = (
    "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (older releases of the official "
    "instrumentors also need OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental); where content must "
    "not be exported, OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=steelyard hands it to this process alone"
)
_SWITCHES = {
    "genai": _CAPTURE,
    "openinference": (
        "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS, OPENINFERENCE_HIDE_INPUT_TEXT and "
        "OPENINFERENCE_HIDE_OUTPUT_TEXT, or the same fields of TraceConfig"
    ),
    "openllmetry": "set TRACELOOP_TRACE_CONTENT=true",
    "litellm": "leave litellm.turn_off_message_logging unset or False (content is on unless it is set)",
    "adk": adk.SWITCH,
    "semantic_kernel": semantic_kernel.SWITCH,
    "vercel": vercel.SWITCH,
    "spring": spring.SWITCH,
    "haystack": haystack.SWITCH,
    "pydantic_ai": pydantic_ai.SWITCH,
}

ADVICE: dict[Cause, str] = {
    "content_off": _CAPTURE,
    "attributes_dropped": "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT (the default is 128; the oldest go first)",
    "unreadable": (
        "JSON was cut or is not JSON: raise or unset OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT and "
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
    ),
    "documents_without_text": (
        "the retriever's span tells ids and scores only, and no prompt was recorded that could hold the "
        "texts: add an instrumentor of the model client (opentelemetry-instrumentation-genai-openai or its "
        "like) with OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY, or record with "
        "steelyard_llamaindex or steelyard_langchain instead"
    ),
    "no_documents": (
        "something was retrieved and no document is told; set steelyard.contexts on a span of the turn"
    ),
    "no_answer": (
        "no model's reply is in the trace: instrument the model client too, let streams run to their end, "
        "or set steelyard.answer on a span of the turn. LlamaIndex's own OpenTelemetry integration does not "
        "write streamed answers down; openinference-instrumentation-llama-index does"
    ),
    "no_question": "no question is in the trace; set steelyard.question on a span of the turn",
    "no_retrieval": (
        "this is no RAG turn; where something was retrieved, instrument the retriever or set "
        "steelyard.contexts on a span of the turn"
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
    "no_question": "there is no question",
    "no_retrieval": "nothing was retrieved",
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
    """Say why a candidate is no turn that can be judged."""
    cause, dialect = _cause(turn, find_contexts(turn) if found is None else found)
    span = turn.root.span
    advice = _SWITCHES.get(dialect, ADVICE[cause]) if cause == "content_off" else ADVICE[cause]
    return Diagnosis(
        trace_id=span.trace_id,
        span_id=span.span_id,
        span=span.name,
        cause=cause,
        advice=advice,
        also=turn.joined,
    )


def _cause(turn: Turn, found: Found) -> tuple[Cause, str]:
    sights = [node.sight for node in turn.nodes if node.sight]
    if not sights:
        return "no_llm_spans", ""
    missing = not (found.contexts and turn.question and turn.answer)
    hidden = [_switch(node) for node in turn.nodes if node.sight and node.sight.hidden]
    withheld = [_switch(node) for node, sight in turn.seen("tool") if sight.hidden and not found.contexts]
    if withheld:
        return "content_off", withheld[0]
    # OpenInference says what it hid; the others just leave it out, which may have another reason.
    if missing and hidden and ("openinference" in hidden or not _told(turn, found)):
        return "content_off", "openinference" if "openinference" in hidden else hidden[0]
    if missing and any(node.span.dropped for node in turn.nodes if node.sight):
        return "attributes_dropped", ""
    if missing and any(sight.broken for sight in sights):
        return "unreadable", ""
    return _lack(turn, found), ""


def _switch(node: Node) -> str:
    """Whose switch a span obeys: OpenLLMetry writes `gen_ai.*` too, but has a switch of its own."""
    assert node.sight is not None
    if node.span.scope == "litellm":
        return "litellm"
    own = node.sight.dialect == "genai" and _OPENLLMETRY.match(node.span.scope)
    return "openllmetry" if own else node.sight.dialect


def _told(turn: Turn, found: Found) -> bool:
    """Whether at least the other half of the content is there, so that it was not switched off as a whole."""
    return bool(found.contexts or found.bare or (turn.answer and turn.prompts))


def _lack(turn: Turn, found: Found) -> Cause:
    if not found.contexts:
        if found.bare:
            return "documents_without_text"
        if turn.retrieves:
            return "no_documents"
        lost = turn.root.span.parent_id is not None and not turn.prompts and not turn.answer
        return "orphan" if lost else "no_retrieval"
    return "no_question" if not turn.question else "no_answer"
