"""One RAG turn: some spans that belong together, and what they say about it as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from steelyard_opentelemetry.spans._messages import Message
from steelyard_opentelemetry.spans._parsed import Kind, ParsedSpan
from steelyard_opentelemetry.spans._prompt import question_of_prompt
from steelyard_opentelemetry.spans._tree import Node

_ASKED = re.compile(r"^(?:user_?)?(?:question|query|query_str|input|q)$", re.IGNORECASE)


@dataclass(eq=False)
class Turn:
    """A candidate: everything below one root, or pieces that were joined because they belong together."""

    root: Node
    """The span that stands for the turn."""
    nodes: Sequence[Node]
    """Every span of the turn, in order of start."""
    joined: tuple[str, ...] = ()
    """Trace ids of pieces that came from elsewhere."""
    found: object = None
    """What `find_contexts` found, once it has looked."""

    @classmethod
    def below(cls, root: Node) -> Turn:
        """The turn of one tree."""
        return cls(root, list(root.below()))

    @classmethod
    def of(cls, root: Node, pieces: Iterable[Turn]) -> Turn:
        """One turn out of several pieces."""
        parts = list(pieces)
        nodes = sorted((node for part in parts for node in part.nodes), key=lambda node: node.span.start)
        elsewhere = {part.root.span.trace_id for part in parts} - {root.span.trace_id}
        return cls(root, nodes, tuple(sorted(elsewhere)))

    @cached_property
    def above(self) -> dict[int, frozenset[Kind]]:
        """For each span (by `id`), the kinds of the spans above it within the turn."""
        found: dict[int, frozenset[Kind]] = {}
        tops = {id(node) for node in self.nodes} - {id(c) for node in self.nodes for c in node.children}
        waiting = [(node, frozenset[Kind]()) for node in self.nodes if id(node) in tops]
        while waiting:
            node, kinds = waiting.pop()
            found[id(node)] = kinds
            inner = kinds | {node.parsed.kind} if node.parsed else kinds
            waiting.extend((child, inner) for child in node.children)
        return found

    def seen(self, *kinds: Kind) -> list[tuple[Node, ParsedSpan]]:
        """The spans of some kinds."""
        return [
            (node, node.parsed)
            for node in self.nodes
            if node.parsed is not None and node.parsed.kind in kinds
        ]

    def outermost(self, kind: Kind) -> list[tuple[Node, ParsedSpan]]:
        """The spans of a kind that stand in no other of the same kind."""
        return [(node, parsed) for node, parsed in self.seen(kind) if kind not in self.above[id(node)]]

    @cached_property
    def agentic(self) -> bool:
        """Whether tools were called, so that what is below them has questions and answers of its own."""
        return bool(self.seen("tool"))

    @cached_property
    def retrieves(self) -> bool:
        """Whether anything was retrieved, whatever is told of it."""
        return bool(self.seen("retrieval", "rerank")) or any(
            parsed.documents for _, parsed in self.seen("turn")
        )

    @cached_property
    def messages(self) -> list[Message]:
        """Everything that models were sent."""
        return [message for _, parsed in self.seen("llm") for message in parsed.messages]

    @cached_property
    def prompts(self) -> list[str]:
        """The texts that models were sent."""
        return [message.text for message in self.messages if message.text]

    @cached_property
    def answer(self) -> str:
        """What the turn came to: the user's mark, the root's output, else the last model's last words."""
        marked = [parsed.answer for _, parsed in self.seen("turn") if parsed.answer]
        if marked:
            return marked[0]
        own = self.root.parsed.answer if self.root.parsed else ""
        if own:
            return own
        models = [(node, parsed) for node, parsed in self.seen("llm") if parsed.answer]
        outside = [(node, parsed) for node, parsed in models if "tool" not in self.above[id(node)]]
        last = max(outside or models, key=lambda found: found[0].span.end, default=None)
        return last[1].answer if last else ""

    @cached_property
    def question(self) -> str:
        """The user's own words, as near to the root as they are told."""
        marked = [parsed.question for _, parsed in self.seen("turn") if parsed.question]
        outer = [s.question for node, s in self.seen("chain", "agent") if "tool" not in self.above[id(node)]]
        found = [*marked, *filter(None, outer)]
        if found:
            return found[0]
        ways = (
            (self._asked, self._variable, self._query)
            if self.agentic
            else (self._variable, self._query, self._asked)
        )
        return next((text for way in ways if (text := way())), "")

    def _asked(self) -> str:
        """The user's last words in the first prompt; in a prompt that names a question, that one."""
        for _, parsed in self.seen("llm"):
            said = [message.text for message in parsed.messages if message.role == "user" and message.text]
            if said:
                return question_of_prompt(said[-1]) or said[-1]
        return ""

    def _variable(self) -> str:
        variables = [
            text
            for node, parsed in self.seen("llm", "prompt", "chain")
            for name, text in parsed.variables.items()
            if _ASKED.match(name) and text.strip() and "tool" not in self.above[id(node)]
        ]
        return variables[0].strip() if variables else ""

    def _query(self) -> str:
        return next((parsed.query for _, parsed in self.outermost("retrieval") if parsed.query), "")

    @cached_property
    def standalone(self) -> str:
        """The question as a retriever was asked it, where that is a rewritten one."""
        if self.agentic:
            return ""
        queries = {parsed.query for _, parsed in self.outermost("retrieval") if parsed.query}
        return next(iter(queries)) if len(queries) == 1 and self.question not in queries else ""
