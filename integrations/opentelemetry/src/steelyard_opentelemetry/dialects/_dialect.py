"""What a dialect is: how its spans are known, how they are read, and which switch decides their content."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import ClassVar

from steelyard_opentelemetry.spans._parsed import Kind, ParsedSpan
from steelyard_opentelemetry.spans._span import Span

_MOST_TELLING: tuple[Kind, ...] = ("turn", "rerank", "retrieval", "llm", "tool", "agent", "prompt", "chain")


class Dialect(ABC):
    """One convention for writing LLM work on spans; everything that is known of it stands in its file."""

    name: ClassVar[str]
    """The dialect's name, as it stands in a Record's metadata."""
    scopes: ClassVar[tuple[str, ...]] = ()
    """How the instrumentation scopes of its spans begin.

    For spans that are still open: most instrumentors write what a span says only when it ends.
    """
    scope_names: ClassVar[tuple[str, ...]] = ()
    """Scopes that are known by their whole name."""
    signs: ClassVar[tuple[str, ...]] = ()
    """Attributes without which `parse` finds nothing on a span, unless `scope_signs` say otherwise.

    Most spans are of HTTP and database clients; who has neither kind of sign is asked about each of them.
    """
    scope_signs: ClassVar[tuple[str, ...]] = ()
    """How scopes begin whose spans `parse` has to see, whatever attributes they have."""
    retrieval_kinds: ClassVar[tuple[str, frozenset[str]]] = ("", frozenset())
    """The attribute that says what a span is, and its values for a retrieval or a reranking."""
    retrieval_attributes: ClassVar[tuple[str, ...]] = ()
    """How attributes begin that only a retrieval has."""
    retrieval_words: ClassVar[tuple[str, tuple[str, ...]]] = ("", ())
    """The attribute that names a component, and words in the names of those that retrieve or rank."""
    retrieval_events: ClassVar[frozenset[str]] = frozenset()
    """Names of the span events of a retrieval."""
    content_switch: ClassVar[str] = ""
    """What to do where content was left out."""
    advice: ClassVar[Mapping[str, str]] = {}
    """What to do about other causes of a diagnosis, where this dialect has an answer of its own."""

    @abstractmethod
    def parse(self, span: Span) -> ParsedSpan | None:
        """What the span says in this dialect; None where it speaks another."""

    def may_speak(self, scope: str, signs: Collection[str]) -> bool:
        """Whether `parse` may find something on a span with this scope and these attributes."""
        if not (self.signs or self.scope_signs):
            return True
        return any(sign in signs for sign in self.signs) or scope.startswith(self.scope_signs)

    def governs(self, dialect: str, scope: str) -> bool:
        """Whether spans of a scope obey this dialect's switch although they are written in another."""
        return False

    def is_instrumentor(self, distribution: str) -> bool:
        """Whether an installed distribution writes this dialect; its name in lower case, with hyphens."""
        return False

    def hiding(self, environ: Mapping[str, str]) -> Iterator[str]:
        """The environment variables that keep content off its spans, each with what to do about it."""
        return iter(())


def is_on(value: str) -> bool:
    """Whether an environment variable says yes."""
    return value.strip().lower() in ("1", "true", "yes", "on")


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


def indexed(attributes: Mapping[str, object], prefix: str) -> Iterator[tuple[int, dict[str, object]]]:
    """The entries of a list that is flattened into attributes: `prefix.0.a.b` becomes `(0, {"a.b": ...})`."""
    found: dict[int, dict[str, object]] = {}
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        number, _, rest = key[len(prefix) :].lstrip(".").partition(".")
        if number.isdecimal() and rest:
            found.setdefault(int(number), {})[rest] = value
    yield from sorted(found.items())
