"""The spans of one trace as trees, each with what its dialects say."""

from __future__ import annotations

from collections import deque
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
    its own; so does the first span of a circle of parents, which only a broken exporter writes.
    """
    nodes = {
        span.span_id: Node(span, parse(span))
        for span in sorted(spans, key=lambda span: (span.start, -span.end))
    }
    cut = _circle_starts(nodes)
    above = _runs_above(nodes, cut)
    roots: list[Node] = []
    for key, node in nodes.items():
        parent = nodes.get(node.span.parent_id or "")
        own_run = node.parsed is not None and node.parsed.run and above[key] == "run"
        node.is_orphan = parent is None and node.span.parent_id is not None and not node.span.remote_parent
        if parent is None or key in cut or own_run or _after(node, parent):
            roots.append(node)
        else:
            parent.children.append(node)
    return _adopted(roots, nodes)


def _adopted(roots: list[Node], nodes: dict[str, Node]) -> list[Node]:
    """The roots without those that lost a span above them and ran within another root.

    Roots that lost the same span stand beside each other: a server's, or one that never ends. Of the roots
    before, the one that ends last is looked at, and the last one of those that lost another span.
    """
    kept: list[Node] = []
    reaching: list[Node] = []
    for root in roots:
        lost = root.span.parent_id
        above = None
        if lost is not None and lost not in nodes:
            above = next((r for r in reaching if r.span.parent_id != lost and _covers(r, root)), None)
        if above is not None:
            above.children.append(root)
            continue
        kept.append(root)
        if root.parsed:
            reaching = _two_latest([*reaching, root])
    return kept


def _two_latest(roots: list[Node]) -> list[Node]:
    """The root that ends last, and the one that ends last of those that lost another span."""
    best = max(roots, key=lambda root: root.span.end)
    others = [root for root in roots if root.span.parent_id != best.span.parent_id]
    return [best, max(others, key=lambda root: root.span.end)] if others else [best]


def _covers(outer: Node, inner: Node) -> bool:
    return outer.span.start <= inner.span.start and inner.span.end <= outer.span.end


def _after(node: Node, parent: Node) -> bool:
    """Whether this is a new turn that only seems to stand below the last one, because a context leaked."""
    parsed = node.parsed
    if parsed is None or node.span.start <= parent.span.end:
        return False
    return parsed.kind == "agent" or (parsed.kind in ("chain", "turn") and bool(parsed.question))


def _circle_starts(nodes: dict[str, Node]) -> set[str]:
    """Of each circle of parents, the span with the smallest id, at which it is cut.

    Each span is walked over once: what an earlier way has passed leads to no circle that is not known.
    """
    done: set[str] = set()
    found: set[str] = set()
    for key in nodes:
        way: dict[str, None] = {}
        at: str | None = key
        while at in nodes and at not in done and at not in way:
            way[at] = None
            at = nodes[at].span.parent_id
        if at in way:
            passed = list(way)
            found.add(min(passed[passed.index(at) :]))
        done.update(way)
    return found


def _runs_above(nodes: dict[str, Node], cut: set[str]) -> dict[str, str]:
    """For each span, what stands nearest above it: a `run` of its own, a `tool`, or neither.

    A run below another one only seems to stand there, because a context leaked; a run below a tool is the
    tool's.
    """
    found: dict[str, str] = {}
    for key in nodes:
        way: list[str] = []
        at: str | None = key
        while at in nodes and at not in found:
            way.append(at)
            at = None if at in cut else nodes[at].span.parent_id
        for step in reversed(way):
            above = None if step in cut else nodes.get(nodes[step].span.parent_id or "")
            # A span that is neither hands on what stands above it.
            found[step] = _role(above) or found.get(above.span.span_id, "") if above else ""
    return found


def _role(node: Node) -> str:
    if node.parsed is None:
        return ""
    return "tool" if node.parsed.kind == "tool" else "run" if node.parsed.run else ""
