"""The spans of one trace as trees, each with what its dialects say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from steelyard_opentelemetry.spans._parsed import ParsedSpan
from steelyard_opentelemetry.spans._span import Span


@dataclass(eq=False, slots=True)
class Node:
    """A span in its tree."""

    span: Span
    parsed: ParsedSpan | None
    """None where no dialect knows the span: an HTTP server, a database, the user's own."""
    children: list[Node] = field(default_factory=list)
    """In order of their start."""

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
        waiting = [self]
        while waiting:
            node = waiting.pop(0)
            if node.parsed is not None:
                yield node
            else:
                waiting.extend(node.children)


def grow(spans: Iterable[Span], parse: Callable[[Span], ParsedSpan | None]) -> list[Node]:
    """The trees of one trace, in order of start; `parse` says what a span means.

    A span whose parent is not among them (still open, never ended, in another process, lost) starts a tree of
    its own; so does the first span of a circle of parents, which only a broken exporter writes.
    """
    nodes = {
        span.span_id: Node(span, parse(span))
        for span in sorted(spans, key=lambda span: (span.start, -span.end))
    }
    roots: list[Node] = []
    for node in nodes.values():
        parent = nodes.get(node.span.parent_id or "")
        if parent is None or _circular(node, nodes) or _own_run(node, nodes) or _after(node, parent):
            roots.append(node)
        else:
            parent.children.append(node)
    return _adopted(roots, nodes)


def _adopted(roots: list[Node], nodes: dict[str, Node]) -> list[Node]:
    """The roots without those that lost a span above them and ran within another root.

    Roots that lost the same span stand beside each other: a server's, or one that never ends.
    """
    kept: list[Node] = []
    for root in roots:
        lost = root.span.parent_id
        above = None
        if lost is not None and lost not in nodes:
            above = next(
                (r for r in kept if r.parsed and r.span.parent_id != lost and _covers(r, root)), None
            )
        if above is None:
            kept.append(root)
        else:
            above.children.append(root)
    return kept


def _covers(outer: Node, inner: Node) -> bool:
    return outer.span.start <= inner.span.start and inner.span.end <= outer.span.end


def _after(node: Node, parent: Node) -> bool:
    """Whether this is a new turn that only seems to stand below the last one, because a context leaked."""
    parsed = node.parsed
    if parsed is None or node.span.start <= parent.span.end:
        return False
    return parsed.kind == "agent" or (parsed.kind in ("chain", "turn") and bool(parsed.question))


def _own_run(node: Node, nodes: dict[str, Node]) -> bool:
    """Whether this is a run of its own that only seems to stand below another, because a context leaked."""
    if node.parsed is None or not node.parsed.run:
        return False
    seen = {node.span.span_id}
    above = nodes.get(node.span.parent_id or "")
    while above is not None and above.span.span_id not in seen:
        seen.add(above.span.span_id)
        if above.parsed is not None and (above.parsed.run or above.parsed.kind == "tool"):
            return above.parsed.kind != "tool"
        above = nodes.get(above.span.parent_id or "")
    return False


def _circular(node: Node, nodes: dict[str, Node]) -> bool:
    """Whether the way up leads back to this span before any other, so that it has to be cut here."""
    seen = {node.span.span_id}
    above = nodes.get(node.span.parent_id or "")
    while above is not None:
        if above.span.span_id in seen:
            return above is node and node.span.span_id == min(seen)
        seen.add(above.span.span_id)
        above = nodes.get(above.span.parent_id or "")
    return False
