"""The dialects: how instrumentors write LLM work on spans.

A new dialect is a row of the table in `_table.py`, read by `_rules.py`: its scopes, its switches and its
instrumentors are found from there. Spans that follow none of them are read by `_generic.py`.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from steelyard_opentelemetry._span import ParsedSpan, Span

# `import x as x`: for the other rooms of the project, and not public.
from steelyard_opentelemetry.dialects import _generic
from steelyard_opentelemetry.dialects._content import CONTENT, Content
from steelyard_opentelemetry.dialects._generic import around as around
from steelyard_opentelemetry.dialects._generic import counts_none, own_names
from steelyard_opentelemetry.dialects._generic import own_answers as own_answers
from steelyard_opentelemetry.dialects._generic import own_questions as own_questions
from steelyard_opentelemetry.dialects._generic import own_texts as own_texts
from steelyard_opentelemetry.dialects._rules import fused
from steelyard_opentelemetry.dialects._shapes import json_value as json_value
from steelyard_opentelemetry.dialects._table import DIALECTS as DIALECTS

_SCOPES = tuple(scope for dialect in DIALECTS for scope in dialect.scopes)
_SCOPE_NAMES = frozenset(scope for dialect in DIALECTS for scope in dialect.scope_names)


_RETRIEVAL = re.compile(
    r"retriev|re_?rank|ranker|vector_?store|db\.(?:vector|query\.result)|^steelyard\.|(?<![a-z])rag(?![a-z])",
    re.IGNORECASE,
)
"""What spans, attributes and events of a look-up or a ranking are called; marks by hand are as good."""
_SHORT = 80
_CACHE = re.compile(
    r"semantic[ _.-]?cache|cache[ _.-]?(?:look_?up|search|check|hit|get)"
    r"|(?:look_?up|check|search|query)[ _.-]?(?:the[ _.-]?)?(?:answer[ _.-]?)?cache",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"Tool name: \S+\nTool description: |Schema of table \S+:\n")
"""How LlamaIndex's indexes of objects begin the text of a tool or of a table."""


def parse(span: Span) -> ParsedSpan | None:
    """What a span says, in whichever dialects it speaks; None where it speaks none."""
    names = frozenset(span.attributes)
    able = (dialect for dialect in DIALECTS if dialect.may_read(span, names))
    known = [parsed for dialect in able if (parsed := dialect.parse(span)) is not None]
    if all(parsed.dialect == "genai" and _says_nothing(parsed) for parsed in known):
        # Unknown, or a span in the conventions whose content stands under a vendor's own names.
        known.extend(filter(None, (_generic.read(span, *(parsed.kind for parsed in known)),)))
    found = fused(known)
    if found is not None and span.scope.startswith("traceloop"):  # of functions that somebody decorated
        found = _generic.searched(found, span)
    return None if found is None else _as_look_up(found, span)


def _as_look_up(found: ParsedSpan, span: Span) -> ParsedSpan:
    """A span without what is no passage although it was looked up, and with what was searched for."""
    if found.kind in ("retrieval", "chain") and _CACHE.search(span.name):
        # What a cache of answers finds is an earlier question, and no passage.
        return replace(found, kind="chain", documents=(), passing=(), empty=False)
    if found.documents and all(_OBJECT.match(one.text) for one in found.documents):
        return replace(found, documents=(), empty=True)
    if found.kind in ("retrieval", "rerank") and not (found.documents or found.noted or found.empty):
        found = replace(found, empty=counts_none(span))
    if found.kind == "retrieval" and not found.query:
        # Convention or not, what was searched for stands under the same few names.
        return replace(found, query=next(iter(own_questions(span)), ""))
    return found


def _says_nothing(parsed: ParsedSpan) -> bool:
    """Whether this is a call without content, a look-up without a result, a step without words."""
    told = {"retrieval": parsed.documents or parsed.empty, "llm": True, "tool": True}
    return parsed.hidden or not told.get(parsed.kind, parsed.question or parsed.answer)


def known_scope(scope: str) -> bool:
    """Whether spans of an instrumentation scope usually speak one of the dialects."""
    return scope in _SCOPE_NAMES or scope.startswith(_SCOPES)


def retrieves(span: Any) -> bool:
    """Whether an SDK span seems to be a retrieval, by its name, its attributes' names and their short values.

    Cheap enough for the application's own thread: what the span says is read on another one.
    """
    attributes = span.attributes or {}
    texts = (value for value in attributes.values() if isinstance(value, str))
    kinds = (text for text in texts if len(text) < _SHORT and " " not in text)
    return any(
        map(_RETRIEVAL.search, (span.name, *attributes, *kinds, *(event.name for event in span.events)))
    )


def names_search(span: Span) -> bool:
    """Whether a span of the application's own is called a look-up, or one of its attributes is."""
    return any(map(_RETRIEVAL.search, own_names(span)))


def advice_of(names: Collection[str], cause: str) -> list[str]:
    """What the dialects of a trace know to do about a cause."""
    told = (content.advice for name, content in CONTENT.items() if name in names)
    return [advice[cause] for advice in told if cause in advice]


def content_switch(name: str, scope: str) -> tuple[str, str]:
    """Which dialect's switch a span in dialect `name` obeys, and what to do with it."""
    governing = (found for found, content in CONTENT.items() if content.governs(name, scope))
    found = next(governing, name)
    return found, CONTENT.get(found, Content()).switch
