"""What a dialect is, as data: how its spans are known, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields, replace

from steelyard_opentelemetry.dialects._rules import SpanRule, by_rules
from steelyard_opentelemetry.spans._parsed import Kind, ParsedSpan
from steelyard_opentelemetry.spans._span import Span

_MOST_TELLING: tuple[Kind, ...] = ("turn", "rerank", "retrieval", "llm", "tool", "agent", "prompt", "chain")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """One convention for writing LLM work on spans: a row of the table."""

    name: str
    """The dialect's name, as it stands in a Record's metadata."""
    read: Callable[[Span], ParsedSpan | None] | None = None
    """Reads a span whose payloads no rule describes; `rules` come after it."""
    rules: tuple[SpanRule, ...] = ()
    """Where its kinds of spans have what they say; the first that fits counts."""
    scopes: tuple[str, ...] = ()
    """How the instrumentation scopes of its spans begin.

    For spans that are still open: most instrumentors write what a span says only when it ends.
    """
    scope_names: tuple[str, ...] = ()
    """Scopes that are known by their whole name."""
    signs: tuple[str, ...] = ()
    """Attributes without which `parse` finds nothing on a span, unless `scope_signs` say otherwise.

    Most spans are of HTTP and database clients; who has neither kind of sign is asked about each of them.
    """
    scope_signs: tuple[str, ...] = ()
    """How scopes begin whose spans `parse` has to see, whatever attributes they have."""
    retrieval_kinds: tuple[str, frozenset[str]] = ("", frozenset())
    """The attribute that says what a span is, and its values for a retrieval or a reranking."""
    retrieval_attributes: tuple[str, ...] = ()
    """How attributes begin that only a retrieval has."""
    retrieval_words: tuple[str, tuple[str, ...]] = ("", ())
    """The attribute that names a component, and words in the names of those that retrieve or rank."""
    retrieval_events: frozenset[str] = frozenset()
    """Names of the span events of a retrieval."""

    def parse(self, span: Span) -> ParsedSpan | None:
        """What the span says in this dialect; None where it speaks another."""
        return (self.read(span) if self.read else None) or by_rules(self.name, self.rules, span)

    def may_speak(self, scope: str, signs: Collection[str]) -> bool:
        """Whether `parse` may find something on a span with this scope and these attributes."""
        if not (self.read or self.rules):
            return False
        if not (self.signs or self.scope_signs):
            return True
        return any(sign in signs for sign in self.signs) or scope.startswith(self.scope_signs)


def fused(spoken: Iterable[ParsedSpan]) -> ParsedSpan | None:
    """What several dialects say on one span: the most telling kind, and the first of each part."""
    found = sorted(spoken, key=lambda parsed: _MOST_TELLING.index(parsed.kind))
    if len(found) < 2:
        return found[0] if found else None
    best, *others = found
    missing: dict[str, object] = {}
    for part in fields(ParsedSpan):
        if part.name != "hidden" and not getattr(best, part.name):
            missing[part.name] = next((v for other in others if (v := getattr(other, part.name))), None)
    filled = replace(best, **{name: value for name, value in missing.items() if value})  # type: ignore[arg-type]
    # What one of them tells is not hidden; nor is a span with documents or messages.
    told = any(parsed.documents or parsed.messages or not parsed.hidden for parsed in found)
    return replace(filled, hidden=not told)
