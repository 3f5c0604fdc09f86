"""What a dialect makes of one span."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Protocol

from steelyard.record import Context
from steelyard_opentelemetry._messages import Message
from steelyard_opentelemetry._span import Span

__all__ = ["Dialect", "Kind", "ParsedSpan", "fused", "indexed"]

Kind = Literal["turn", "rerank", "retrieval", "llm", "tool", "agent", "prompt", "chain"]
_MOST_TELLING: tuple[Kind, ...] = ("turn", "rerank", "retrieval", "llm", "tool", "agent", "prompt", "chain")


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedSpan:
    """What one span says about a RAG turn; what it does not say is empty."""

    dialect: str
    """Name of the dialect that read it."""
    kind: Kind
    """What the span stands for; `turn` only where the user marked it by hand."""
    question: str = ""
    """The question that was put to this step."""
    answer: str = ""
    """The text this step came to."""
    query: str = ""
    """What a retrieval was asked."""
    documents: tuple[Context, ...] = ()
    """What a retrieval or a reranker returned; an empty text where only ids and scores are told."""
    messages: tuple[Message, ...] = ()
    """What a model was sent."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of a prompt template, by name."""
    result: object = None
    """What a tool returned, as it stands on the span."""
    tool: str = ""
    """Name of a tool."""
    passing: tuple[object, ...] = ()
    """Payloads of a step, looked into for documents where nothing else has them."""
    reference: str = ""
    """The expected answer, marked by hand."""
    run: bool = False
    """Whether the instrumentor knows this as a run of its own, whatever span it stands below."""
    hidden: bool = False
    """Whether content was left out on purpose, by this dialect's own switch."""
    broken: str = ""
    """Why a part could not be read: `invalid_json` or `oversized`."""


class Dialect(Protocol):
    """One convention for writing LLM work on spans."""

    @property
    def name(self) -> str:
        """The dialect's name, as it stands in a Record's metadata."""
        ...

    def see(self, span: Span) -> ParsedSpan | None:
        """What the span says in this dialect; None where it speaks another."""
        ...


def fused(sights: Iterable[ParsedSpan]) -> ParsedSpan | None:
    """What several dialects say on one span: the most telling kind, and the first of each part."""
    found = sorted(sights, key=lambda sight: _MOST_TELLING.index(sight.kind))
    if len(found) < 2:
        return found[0] if found else None
    best, *others = found
    missing: dict[str, object] = {}
    for part in fields(ParsedSpan):
        if part.name != "hidden" and not getattr(best, part.name):
            missing[part.name] = next((v for other in others if (v := getattr(other, part.name))), None)
    filled = replace(best, **{name: value for name, value in missing.items() if value})  # type: ignore[arg-type]
    # What one of them tells is not hidden; nor is a span with documents or messages.
    told = any(sight.documents or sight.messages or not sight.hidden for sight in found)
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
