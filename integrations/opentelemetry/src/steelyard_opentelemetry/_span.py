"""The one shape of a span that is read here, what a dialect makes of it, and the trees that spans form."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from steelyard.record import Context
from steelyard.recording import SILENT_TRACE
from steelyard.recording.reading import Message

Kind = Literal["turn", "rerank", "retrieval", "llm", "tool", "agent", "prompt", "chain"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedSpan:
    """What one span says about a RAG turn; what it does not say is empty."""

    dialect: str
    """Name of the dialect that read it."""
    kind: Kind
    """What the span stands for; `turn` only where the user marked it by hand."""
    question: str = field(default="", repr=False)
    """The question that was put to this step; of a model call its input, if that is one text."""
    answer: str = field(default="", repr=False)
    """The text this step came to."""
    query: str = field(default="", repr=False)
    """What a retrieval was asked."""
    documents: tuple[Context, ...] = ()
    """What a retrieval or a reranker returned; an empty text where only ids and scores are told."""
    windows: tuple[Context, ...] = ()
    """The text around them, where they carry it: a later step may have shown it instead."""
    noted: tuple[str, ...] = field(default=(), repr=False)
    """Texts about a retrieval that an application noted by hand: passages if a prompt shows them."""
    messages: tuple[Message, ...] = ()
    """What a model was sent."""
    arguments: tuple[str, ...] = field(default=(), repr=False)
    """Arguments of the tools that a model called, each as JSON."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables of a prompt template, by name."""
    in_conversation: bool = False
    """Whether what this step was given holds an earlier exchange."""
    empty: bool = False
    """Whether a retrieval told that it returned nothing."""
    result: object = field(default=None, repr=False)
    """What a tool returned, as it stands on the span."""
    tool: str = ""
    """Name of a tool."""
    passing: tuple[object, ...] = field(default=(), repr=False)
    """Payloads of a step, looked into for documents where nothing else has them."""
    reference: str = field(default="", repr=False)
    """The expected answer, marked by hand."""
    run: bool = False
    """Whether the instrumentor knows this as a run of its own, whatever span it stands below."""
    hidden: bool = False
    """Whether content was left out on purpose, by this dialect's own switch."""
    broken: str = ""
    """Why a part could not be read: `invalid_json` or `oversized`."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that a model was sent."""
        return tuple(message.text for message in self.messages if message.text)


OWN_SCOPE = "steelyard"
"""Instrumentation scope of the spans Steelyard writes itself; they are never recorded."""

_SILENT = frozenset({SILENT_TRACE, f"{SILENT_TRACE:032x}"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened within a span."""

    name: str
    """Its name, such as `exception` or `RetrievalEndEvent`."""
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What was noted with it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A span that has ended."""

    trace_id: str
    """32 lower-case hex digits."""
    span_id: str
    """16 lower-case hex digits."""
    parent_id: str | None = None
    """The parent's span id, or None for the first span of a trace."""
    name: str = ""
    """What the instrumentor called it."""
    scope: str = ""
    """Name of the instrumentation scope."""
    service: str = ""
    """Which process it comes from: `service.instance.id`, else `service.name`."""
    version: str = ""
    """Which version of it runs: `service.version`."""
    start: int = 0
    """Unix time in nanoseconds."""
    end: int = 0
    """Unix time in nanoseconds."""
    failed: bool = False
    """Whether its status is an error."""
    error: str = field(default="", repr=False)
    """The status description."""
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the instrumentor wrote on it."""
    events: tuple[Event, ...] = ()
    """What happened within it, in order."""
    links: tuple[tuple[str, str], ...] = ()
    """Trace id and span id of each span it is linked to."""
    dropped: int = 0
    """How many attributes and events the SDK had to drop."""
    limit: int | None = None
    """At how many characters the SDK cuts texts; 0 where it does not, None where that is not known."""
    sampled: bool = True
    """The W3C sampled flag."""
    remote_parent: bool = False
    """Whether the exporter says that the parent is a span of another process."""
    flow: str = ""
    """The task or thread in which a trace began, if that was seen."""

    def text(self, key: str) -> str:
        """An attribute that is a text, else nothing."""
        value = self.attributes.get(key)
        return value if isinstance(value, str) else ""


_HAS_REMOTE, _IS_REMOTE = 0x100, 0x200


def is_remote(flags: int) -> bool:
    """Whether the `flags` of an OTLP span say that its parent is in another process."""
    return flags & _HAS_REMOTE != 0 and flags & _IS_REMOTE != 0


def is_own(scope: str, trace_id: int | str = 0) -> bool:
    """Whether a span is Steelyard's own, or a judge's."""
    if trace_id in _SILENT:
        return True
    return scope == OWN_SCOPE or scope.startswith(OWN_SCOPE + ".")


def from_sdk(span: Any, *, content: Mapping[str, Any] | None = None) -> Span:
    """A span of the OpenTelemetry SDK (a `ReadableSpan`), without importing the SDK.

    Args:
        span: The span.
        content: Attributes that are not on the span, but known all the same.
    """
    context, parent, status, start = span.context, span.parent, span.status, span.start_time or 0
    resource = span.resource.attributes if span.resource is not None else {}
    scope, attributes = span.instrumentation_scope, span.attributes or {}
    trace_id, span_id = _ids(context)
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=None if parent is None else _ids(parent)[1],
        name=span.name,
        scope=scope.name if scope is not None else "",
        service=service_of(resource),
        version=version_of(resource),
        start=start,
        end=span.end_time or start,
        failed=status.status_code.name == "ERROR",
        error=status.description or "",
        attributes={**content, **attributes} if content else attributes,
        events=tuple(map(_event, span.events)),
        links=tuple(_ids(link.context) for link in span.links or ()),
        limit=_limit_of(span),
        dropped=span.dropped_attributes + span.dropped_events,
        sampled=bool(context.trace_flags & 1),
    )


def _event(event: Any) -> Event:
    return Event(name=event.name, attributes=event.attributes or {})


def _ids(context: Any) -> tuple[str, str]:
    """The ids of a span's context in hexadecimal digits."""
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def _limit_of(span: Any) -> int | None:
    """The SDK keeps the limit with the attributes and shows it nowhere else; other SDKs may not have it."""
    attributes: Any = getattr(span, "_attributes", None)
    return attributes.max_value_len or 0 if hasattr(attributes, "max_value_len") else None


def service_of(resource: Mapping[str, Any]) -> str:
    """The name of the process a resource stands for."""
    return str(resource.get("service.instance.id") or resource.get("service.name") or "")


def version_of(resource: Mapping[str, Any]) -> str:
    """The version of the program that a resource stands for."""
    return str(resource.get("service.version") or "")


@dataclass(eq=False, slots=True)
class Node:
    """A span in its tree."""

    span: Span
    parsed: ParsedSpan | None
    """None where no dialect knows the span: an HTTP server, a database, the user's own."""
    children: list[Node] = field(default_factory=list)
    """In order of their start."""
    is_orphan: bool = False
    """Whether the span above it is not among the spans of the trace."""
    is_one_of_several: bool = False
    """Whether others lost the same span, so that it may be a part of what they are parts of."""

    def below(self) -> Iterator[Node]:
        """This span and everything below it, in order of start, parents before children."""
        found: list[Node] = []
        waiting = [self]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting.extend(node.children)
        yield from sorted(found, key=lambda node: (node.span.start, -node.span.end))

    def tops(self) -> Iterator[Node]:
        """The topmost spans that a dialect knows: this one, or those nearest below it."""
        waiting = deque([self])
        while waiting:
            node = waiting.popleft()
            if node.parsed is not None:
                yield node
            else:
                waiting.extend(node.children)


def grow(spans: Iterable[Span], parse: Callable[[Span], ParsedSpan | None]) -> list[Node]:
    """The trees of one trace, in order of start; `parse` says what a span means.

    A span whose parent is not among them (still open, never ended, in another process, lost) starts a tree of
    its own. So does a run below another run, which only seems to stand there because a context leaked; a run
    below a tool is the tool's. Spans in a circle of parents, which only a broken exporter writes, stand in
    none.
    """
    nodes = {span.span_id: Node(span, parse(span)) for span in sorted(spans, key=_began)}
    below: dict[str, list[Node]] = {}
    roots: list[Node] = []
    for node in nodes.values():
        parent = nodes.get(node.span.parent_id or "")
        node.is_orphan = parent is None and node.span.parent_id is not None and not node.span.remote_parent
        (roots if parent is None else below.setdefault(parent.span.span_id, [])).append(node)
    roots += _hung(roots, below)
    return _adopted(sorted(roots, key=lambda root: _began(root.span)), nodes)


def _hung(roots: list[Node], below: dict[str, list[Node]]) -> list[Node]:
    """Give all spans below some roots to their parents; those that only seem to stand there are roots too."""
    own: list[Node] = []
    waiting = [(root, "") for root in roots]
    while waiting:
        node, above = waiting.pop()
        # A span that is neither a run nor a tool hands on what stands above it.
        above = _role(node) or above
        for child in below.get(node.span.span_id, ()):
            is_run = child.parsed is not None and child.parsed.run and above == "run"
            (own if is_run or _after(child, node) else node.children).append(child)
            waiting.append((child, above))
    return own


def _began(span: Span) -> tuple[int, int]:
    return span.start, -span.end


def _adopted(roots: list[Node], nodes: dict[str, Node]) -> list[Node]:
    """The roots without those that lost a span above them and ran within the one before that ends last.

    Roots that lost the same span stand beside each other: a server's, or one that never ends.
    """
    kept: list[Node] = []
    outer: Node | None = None
    for root in roots:
        lost = root.span.parent_id
        is_lost = lost is not None and lost not in nodes
        is_within = (
            outer is not None and outer.span.start <= root.span.start and root.span.end <= outer.span.end
        )
        if outer is not None and is_lost and lost != outer.span.parent_id and is_within:
            outer.children.append(root)
            continue
        kept.append(root)
        if root.parsed and (outer is None or root.span.end >= outer.span.end):
            outer = root
    lost_by = Counter(root.span.parent_id for root in kept if root.is_orphan)
    for root in kept:
        root.is_one_of_several = lost_by[root.span.parent_id] > 1
    return kept


def _after(node: Node, parent: Node) -> bool:
    """Whether this is a new turn that only seems to stand below the last one, because a context leaked."""
    parsed = node.parsed
    if parsed is None or node.span.start <= parent.span.end:
        return False
    return parsed.kind == "agent" or (parsed.kind in ("chain", "turn") and bool(parsed.question))


def _role(node: Node) -> str:
    if node.parsed is None:
        return ""
    return "tool" if node.parsed.kind == "tool" else "run" if node.parsed.run else ""
