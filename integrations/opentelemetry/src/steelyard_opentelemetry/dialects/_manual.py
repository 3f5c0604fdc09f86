"""Plain attributes that a user sets by hand, on any span of any tracer."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.record import text_of
from steelyard_opentelemetry.spans._documents import retrieved_in
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._span import Span

_NAME = "steelyard"
_QUESTION, _CONTEXTS, _ANSWER = MARKS = ("steelyard.question", "steelyard.contexts", "steelyard.answer")


def read(span: Span) -> ParsedSpan | None:
    """The marks on a span, if it has any: a question, contexts (a list of texts, or JSON), an answer.

    What is marked by hand wins over what is found; what is not marked is still looked for below the span.
    """
    attributes: Mapping[str, object] = span.attributes
    if not any(key in attributes for key in MARKS):
        return None
    contexts = attributes.get(_CONTEXTS)
    return ParsedSpan(
        dialect=_NAME,
        kind="turn",
        question=text_of(attributes.get(_QUESTION)).strip(),
        answer=text_of(attributes.get(_ANSWER)).strip(),
        documents=() if contexts is None else retrieved_in(contexts),
        reference=text_of(attributes.get("steelyard.reference")).strip(),
    )
