"""The spans of one trace as trees, each with what its dialects say."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from steelyard_opentelemetry._span import ParsedSpan, Span


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
