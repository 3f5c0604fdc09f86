"""Plain attributes that a user sets by hand, on any span of any tracer."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.record import text_of
from steelyard_opentelemetry.dialects._dialect import Dialect
from steelyard_opentelemetry.spans._documents import retrieved_in
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._span import Span

__all__ = ["Manual"]

_QUESTION, _CONTEXTS, _ANSWER, _REFERENCE = (
    "steelyard.question",
    "steelyard.contexts",
    "steelyard.answer",
    "steelyard.reference",
)


class Manual(Dialect):
    """`steelyard.question`, `.contexts` (a list of texts, or JSON), `.answer` and `.reference`.

    What is marked by hand wins over what is found; what is not marked is still looked for below the span.
    """

    name = "steelyard"
    signs = (_QUESTION, _CONTEXTS, _ANSWER)
    retrieval_attributes = ("steelyard.",)

    def parse(self, span: Span) -> ParsedSpan | None:
        """The marks on a span, if it has any."""
        attributes: Mapping[str, object] = span.attributes
        if not any(key in attributes for key in (_QUESTION, _CONTEXTS, _ANSWER)):
            return None
        contexts = attributes.get(_CONTEXTS)
        return ParsedSpan(
            dialect=self.name,
            kind="turn",
            question=text_of(attributes.get(_QUESTION)).strip(),
            answer=text_of(attributes.get(_ANSWER)).strip(),
            documents=() if contexts is None else retrieved_in(contexts),
            reference=text_of(attributes.get(_REFERENCE)).strip(),
        )
