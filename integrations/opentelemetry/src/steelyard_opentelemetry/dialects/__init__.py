"""The dialects: how instrumentors write LLM work on spans, one file each.

`conventions/` holds those that many instrumentors share, and how spans are read that follow none;
`frameworks/` and `vendors/` those that one product writes. A new dialect is a file with a `Dialect` in it and
an entry in `DIALECTS`: its scopes, the marks of its retrievals, its switches and its instrumentors are found
from there.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from typing import Any

from steelyard_opentelemetry.dialects._dialect import Dialect, fused
from steelyard_opentelemetry.dialects.conventions.genai import GenAI
from steelyard_opentelemetry.dialects.conventions.generic import Generic
from steelyard_opentelemetry.dialects.conventions.manual import Manual
from steelyard_opentelemetry.dialects.conventions.openinference import OpenInference
from steelyard_opentelemetry.dialects.conventions.openllmetry import OpenLLMetry
from steelyard_opentelemetry.dialects.frameworks.adk import ADK
from steelyard_opentelemetry.dialects.frameworks.autogen import AutoGen
from steelyard_opentelemetry.dialects.frameworks.crewai import CrewAI
from steelyard_opentelemetry.dialects.frameworks.haystack import Haystack
from steelyard_opentelemetry.dialects.frameworks.langchain4j import LangChain4j
from steelyard_opentelemetry.dialects.frameworks.llamaindex import LlamaIndex
from steelyard_opentelemetry.dialects.frameworks.pydantic_ai import PydanticAI
from steelyard_opentelemetry.dialects.frameworks.semantic_kernel import SemanticKernel
from steelyard_opentelemetry.dialects.frameworks.spring import Spring
from steelyard_opentelemetry.dialects.frameworks.vercel import Vercel
from steelyard_opentelemetry.dialects.vendors.langsmith import LangSmith
from steelyard_opentelemetry.dialects.vendors.litellm import LiteLLM
from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._span import Span

__all__ = [
    "DIALECTS",
    "Dialect",
    "GenAI",
    "LlamaIndex",
    "Manual",
    "OpenInference",
    "OpenLLMetry",
    "advice_of",
    "content_switch",
    "known_scope",
    "parse",
    "retrieves",
]

DIALECTS: tuple[Dialect, ...] = (
    *(Manual(), CrewAI(), OpenInference(), Vercel(), LangChain4j(), Spring(), Haystack(), PydanticAI()),
    *(ADK(), SemanticKernel(), AutoGen(), OpenLLMetry(), LangSmith(), LiteLLM(), GenAI(), LlamaIndex()),
)
"""Every dialect; of several on one span the earlier one has the first word."""

_GENERIC = Generic()

_SIGNS = frozenset(sign for dialect in DIALECTS for sign in dialect.signs)
_LONGEST_SIGN = max(len(sign) for dialect in DIALECTS for sign in dialect.scope_signs)

_SCOPES = tuple(scope for dialect in DIALECTS for scope in dialect.scopes)
_SCOPE_NAMES = frozenset(scope for dialect in DIALECTS for scope in dialect.scope_names)
_MARKS = [dialect.retrieval_kinds for dialect in DIALECTS if dialect.retrieval_kinds[0]]
_PREFIXES = tuple(prefix for dialect in DIALECTS for prefix in dialect.retrieval_attributes)
_WORDS = [dialect.retrieval_words for dialect in DIALECTS if dialect.retrieval_words[0]]
_EVENTS = frozenset(event for dialect in DIALECTS for event in dialect.retrieval_events)


_CACHE = re.compile(
    r"semantic[ _.-]?cache|cache[ _.-]?(?:look_?up|search|check|hit|get)"
    r"|(?:look_?up|check|search|query)[ _.-]?(?:the[ _.-]?)?(?:answer[ _.-]?)?cache",
    re.IGNORECASE,
)


def parse(span: Span) -> ParsedSpan | None:
    """What a span says, in whichever dialects it speaks; None where it speaks none."""
    asked = _asked(span.scope[:_LONGEST_SIGN], _SIGNS.intersection(span.attributes))
    known = [parsed for dialect in asked if (parsed := dialect.parse(span)) is not None]
    if all(parsed.dialect == GenAI.name and _says_nothing(parsed) for parsed in known):
        # Unknown, or a span in the conventions whose content stands under a vendor's own names.
        known.extend(filter(None, (_GENERIC.parse(span),)))
    found = fused(known)
    if found is not None and found.kind in ("retrieval", "chain") and _CACHE.search(span.name):
        # What a cache of answers finds is an earlier question, and no passage.
        return replace(found, kind="chain", documents=(), passing=(), empty=False)
    return found


@lru_cache(maxsize=1024)
def _asked(scope: str, signs: frozenset[str]) -> tuple[Dialect, ...]:
    """The dialects that a span may speak which has this scope, and these of the attributes that are signs."""
    return tuple(dialect for dialect in DIALECTS if dialect.may_speak(scope, signs))


def _says_nothing(parsed: ParsedSpan) -> bool:
    """Whether this is a call without content, or a step without a question and an answer."""
    return parsed.hidden or (parsed.kind in ("chain", "agent") and not (parsed.question or parsed.answer))


def known_scope(scope: str) -> bool:
    """Whether spans of an instrumentation scope usually speak one of the dialects."""
    return scope in _SCOPE_NAMES or scope.startswith(_SCOPES)


def retrieves(span: Any) -> bool:
    """Whether an SDK span says, in any dialect, that something was retrieved in it.

    Cheap enough for the application's own thread.
    """
    attributes = span.attributes or {}
    if any(attributes.get(key) in values for key, values in _MARKS):
        return True
    if any(key.startswith(_PREFIXES) for key in attributes):
        return True
    if "retrieve" in span.name.lower():
        return True
    if any(word in str(attributes.get(key, "")) for key, words in _WORDS for word in words):
        return True
    return any(event.name in _EVENTS for event in span.events)


def advice_of(names: Collection[str], cause: str) -> list[str]:
    """What the dialects of a trace know to do about a cause."""
    return [d.advice[cause] for d in DIALECTS if d.name in names and cause in d.advice]


def content_switch(name: str, scope: str) -> tuple[str, str]:
    """Which dialect's switch a span in dialect `name` obeys, and what to do with it."""
    speaking = next(dialect for dialect in (*DIALECTS, _GENERIC) if dialect.name == name)
    governing = (dialect for dialect in DIALECTS if dialect.governs(name, scope))
    found = next(governing, speaking)
    return found.name, found.content_switch
