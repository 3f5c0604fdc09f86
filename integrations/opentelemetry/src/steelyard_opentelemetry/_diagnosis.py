"""Why a trace gives no Record, and which switch to turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard_opentelemetry._evidence import FoundPassages, evidence_of
from steelyard_opentelemetry._turn import Turn
from steelyard_opentelemetry.dialects import advice_of, content_switch

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
        "the call grades, routes, ranks or writes a query for a turn, or an evaluator makes it; nothing is "
        "to be done, unless it is a turn: then set steelyard.question, steelyard.contexts and "
        "steelyard.answer on a span of it"
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


UNTOLD: frozenset[Cause] = frozenset({"documents_without_text", "no_documents", "no_retrieval"})
"""Causes of a turn without passages; if it has a question and an answer, its record says so instead."""
_EXPECTED = frozenset({"no_retrieval", "no_llm_spans", "orphan", "helper_call"})


@dataclass(frozen=True, kw_only=True, slots=True)
class NoRecord:
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

    @property
    def reason(self) -> str:
        """What is lacking, and what to do about it."""
        return f"{self.cause}: {_WHAT[self.cause]} ({self.span}); {self.advice}"

    def __str__(self) -> str:
        return f"{self.trace_id}  {self.reason}"


class DiagnosisTally:
    """Counts diagnoses by cause, and logs the first of each cause that asks for something to be done."""

    def __init__(self, log: SafeLogger) -> None:
        self.counts: Counter[str] = Counter()
        self._warn_once = WarnOnce(log)

    def note(self, diagnoses: Iterable[NoRecord]) -> None:
        """Count some more."""
        for diagnosis in diagnoses:
            self.counts[diagnosis.cause] += 1
            if diagnosis.cause not in _EXPECTED:
                message = "a trace gives no record; more with the same cause are only counted: %s"
                self._warn_once(diagnosis.cause, message, diagnosis)


def diagnose(turn: Turn, found: FoundPassages | None = None) -> NoRecord:
    """Say why a candidate is not a turn that can be judged."""
    if not turn.parsed:  # as most spans are, of HTTP and databases
        return _diagnosis(turn, "no_llm_spans", ADVICE["no_llm_spans"])
    found = evidence_of(turn) if found is None else found
    cause = next(cause for cause, holds in _IN_ORDER if holds(turn, found))
    advice = (cause == "content_off" and _switch(turn, found)) or ADVICE[cause]
    told = ((node.parsed.dialect, node.span.scope) for node in turn.nodes if node.parsed)
    spoken = {name for one in told for name in (one[0], content_switch(*one)[0])}
    return _diagnosis(turn, cause, "; ".join((advice, *advice_of(spoken, cause))))


def _diagnosis(turn: Turn, cause: Cause, advice: str) -> NoRecord:
    span = turn.root.span
    return NoRecord(
        trace_id=span.trace_id,
        span_id=span.span_id,
        span=span.name,
        cause=cause,
        advice=advice,
        also=turn.joined,
    )


def _switch(turn: Turn, found: FoundPassages) -> str | None:
    """The switch that keeps content out of the spans, "" for one of no known name; None where none does."""
    hidden = [
        (node.parsed.kind, content_switch(node.parsed.dialect, node.span.scope))
        for node in turn.nodes
        if node.parsed and node.parsed.hidden
    ]
    of_tools = [switch for kind, (_, switch) in hidden if kind == "tool"]
    if of_tools and (not found.contexts or found.is_guessed):
        return of_tools[0]
    if not hidden or not _lacks(turn, found):
        return None
    # OpenInference says what it hid; the others just leave it out, which may have another reason: not if at
    # least the other part of the content is there, so that it was not switched off as a whole.
    told = next((switch for _, (dialect, switch) in hidden if dialect == "openinference"), None)
    if told:
        return told
    return None if _is_partly_there(turn, found) else hidden[0][1][1]


def _is_partly_there(turn: Turn, found: FoundPassages) -> bool:
    return bool(found.contexts or found.silent or (turn.answer and turn.prompts))


def _lacks(turn: Turn, found: FoundPassages) -> bool:
    """Whether contexts, question or answer are not there."""
    return not (found.contexts and turn.question and turn.answer)


def _is_orphan(turn: Turn) -> bool:
    return turn.root.span.parent_id is not None and not turn.prompts and not turn.answer


def _is_retrieval(turn: Turn) -> bool:
    """Whether the piece is a retrieval by itself, with no step of a turn around it."""
    return turn.root.parsed is None or turn.root.parsed.kind in ("retrieval", "rerank")


_IN_ORDER: tuple[tuple[Cause, Callable[[Turn, FoundPassages], object]], ...] = (
    ("content_off", lambda turn, found: _switch(turn, found) is not None),
    (
        "attributes_dropped",
        lambda turn, found: (
            _lacks(turn, found) and any(node.span.dropped for node in turn.nodes if node.parsed)
        ),
    ),
    (
        "unreadable",
        lambda turn, found: (
            _lacks(turn, found) and any(node.parsed.broken for node in turn.nodes if node.parsed)
        ),
    ),
    ("documents_without_text", lambda _, found: not found.contexts and found.silent),
    ("no_documents", lambda turn, found: not found.contexts and turn.retrieves),
    ("orphan", lambda turn, found: not found.contexts and _is_orphan(turn)),
    ("no_retrieval", lambda _, found: not found.contexts),
    ("unlinked", lambda turn, _: not turn.answer and not turn.seen("llm") and _is_retrieval(turn)),
    ("no_question", lambda turn, _: not turn.question),
    ("helper_call", lambda turn, found: turn.answer and (found.is_guessed or turn.seen("llm"))),
    ("no_answer", lambda _turn, _found: True),
)
"""Causes and how each is told; the first that holds is named."""
