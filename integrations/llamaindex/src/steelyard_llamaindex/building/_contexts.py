"""What a turn retrieved, retrieval by retrieval, and what of it the answer rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steelyard.record import Context, Stage, text_of, to_json_value
from steelyard.recording.provenance import finds_nothing, is_search, passages_of
from steelyard_llamaindex._options import Options
from steelyard_llamaindex._turn import Step, Turn, is_inside
from steelyard_llamaindex.building._extract import contexts_of, get, nodes_of, question_of, result_of

_COMPOSED = ("query", "chat", "tool")
_PASSAGE = 3
"""Words that a text in a tool's list must have to be taken for a passage."""


@dataclass(slots=True, repr=False)
class _Hop:
    """One retrieval of the turn, with what came of it."""

    query: str
    nodes: list[Any]
    composed: bool
    """Whether a query engine answered from it, rather than a bare retriever."""
    behind: bool = False
    """Whether a retriever asked that engine, so that nothing above names these nodes."""


class TurnContexts:
    """The contexts of one turn.

    Attributes:
        hops: Its retrievals, each with the nodes that came out at the end of it.
        retrievals: Its outermost retrieval steps; of a retriever that asks engines, those of the engines.
        unnamed_tools: Tools that returned text which is not known to be evidence.
        searching_tools: Tools whose text counts since their names say that they search.
    """

    def __init__(self, turn: Turn, options: Options) -> None:
        self._turn = turn
        self._options = options
        own = [step for step in turn.steps if step.kind == "retrieve" and _searches(step, turn)]
        self.retrievals = [*turn.loose, *own]
        # Of a call that no run holds, the latest retrieval is the likeliest to have been made for it.
        loose = [_Hop(question_of(step.asked), nodes_of(step.result), False) for step in reversed(turn.loose)]
        self.hops = loose or self._hops(turn.root) or self._tool_results()
        self.unnamed_tools: list[str] = []
        self.searching_tools: dict[str, None] = {}

    def passages(self, question: str) -> tuple[list[Context], list[str]]:
        """The passages the answer rests on, retrieval by retrieval, and notes on what has no text."""
        hops = self.hops
        found = [context for n, hop in enumerate(hops) for context in self._passages(hop, n, question)]
        silent = sum(len(hop.nodes) for hop in hops) - len(found)
        notes = [f"{silent} retrieved nodes have no text"] if silent else []
        return found + self._of_tools(len(hops)), notes

    def _passages(self, hop: _Hop, number: int, question: str) -> list[Context]:
        query = hop.query if hop.query.strip() != question.strip() else ""
        return contexts_of(
            hop.nodes, query=query or None, hop=number, with_metadata=self._options.node_text == "llm"
        )

    def _hops(self, step: Step) -> list[_Hop]:
        """The retrievals of a step, each with the nodes that came out at the end of it.

        What a component returns stands for what its parts returned: a fused retriever for those it fuses, an
        engine with a reranker for its retriever. An engine made of engines is the exception, since it answers
        from their answers: what they returned is kept, as far as it says so itself.
        """
        inner = [hop for child in self._turn.steps if child.parent is step for hop in self._hops(child)]
        own = nodes_of(result_of(step.result))
        if not own:
            return inner
        asked = question_of(step.asked)
        if any(hop.composed for hop in inner):
            if step.kind == "retrieve":  # it asked engines, and what they replied is among its nodes
                engines = [replace(hop, behind=True) for hop in inner if hop.composed]
                return [*engines, _Hop(asked, own, False)]
            return _named(inner, own)
        query = inner[0].query if len(inner) == 1 and inner[0].query else asked
        return [_Hop(query, own, step.kind in _COMPOSED)]

    def _tool_results(self) -> list[_Hop]:
        """Nodes in an agent's own account of its tools, where the tools ran unseen."""
        calls = get(result_of(self._turn.root.result), "tool_calls")
        calls = calls if isinstance(calls, (list, tuple)) else ()
        hops = [_Hop("", nodes_of(get(call, "tool_output")), False) for call in calls]
        return [hop for hop in hops if hop.nodes]

    def _of_tools(self, hop: int) -> list[Context]:
        """Passages that tools returned: lists of any tool, texts of those that the user named."""
        found: list[Context] = []
        for step in self._turn.steps:
            if step.kind == "tool" and step.result is not None and not nodes_of(step.result):
                passages = self._of_tool(step, step.result)
                found += [replace(one, hop=hop) for one in passages]
                hop += bool(passages)
        return found

    def _of_tool(self, step: Step, output: Any) -> Sequence[Context]:
        if get(output, "is_error") is True:
            return ()  # what went wrong is told to the model, and is not evidence
        name, raw = text_of(get(output, "tool_name")), get(output, "raw_output")
        text = text_of(get(output, "content")).strip()
        if finds_nothing(text):
            return ()
        is_listed = isinstance(raw, (list, tuple, Mapping))
        if name in self._options.tool_contexts:
            return passages_of(to_json_value(raw)) if is_listed else [Context(text=text)] if text else ()
        if is_listed:
            return [one for one in passages_of(to_json_value(raw)) if len(one.text.split()) >= _PASSAGE]
        if len(text.split()) < _PASSAGE:
            return ()
        if is_search(name) and not self._options.tool_contexts and not self._asks_a_model(step):
            self.searching_tools.setdefault(name)
            return passages_of(text)
        if name not in self.unnamed_tools:
            self.unnamed_tools.append(name)
        return ()

    def _asks_a_model(self, tool: Step) -> bool:
        """Whether a model or a retriever ran inside of a tool: what it returns then is not a passage."""
        return any(s.kind in ("llm", "retrieve") and _is_below(s, tool) for s in self._turn.steps)

    def everything(self, question: str) -> list[Context]:
        """What the retrievers returned; nothing where all of it is in the hops already."""
        found = [_Hop(question_of(step.asked), nodes_of(step.result), False) for step in self.retrievals]
        used = {id(each.node) for hop in self.hops for each in hop.nodes}
        if all(id(each.node) in used for hop in found for each in hop.nodes):
            return []
        return [context for n, hop in enumerate(found) for context in self._passages(hop, n, question)]

    def by_hop(self) -> Iterable[tuple[str, set[str]]]:
        """The query of each retrieval, and the texts that came of it."""
        for number, hop in enumerate(self.hops):
            yield hop.query, {context.text for context in self._passages(hop, number, "")}

    def stages(self) -> Iterable[Stage]:
        """Retrievals inside others: the parts of a fused retriever, the queries of a rewriting one."""
        for step in self._turn.steps:
            if step.kind == "retrieve" and is_inside(step, "retrieve"):
                query = question_of(step.asked)
                nodes = nodes_of(step.result)
                contexts = contexts_of(
                    nodes, query=None, hop=0, with_metadata=self._options.node_text == "llm"
                )
                yield Stage(name=step.name, query=query, contexts=tuple(contexts))


def _searches(step: Step, turn: Turn) -> bool:
    """Whether a retrieval is not part of another, and does not ask engines that retrieve."""
    if any(one.kind in ("query", "chat") and _is_below(one, step) for one in turn.steps):
        return False
    parent = step.parent
    while parent is not None and parent.kind not in ("query", "chat"):
        if parent.kind == "retrieve":
            return False
        parent = parent.parent
    return True


def _is_below(step: Step | None, other: Step) -> bool:
    while step is not None:
        step = step.parent
        if step is other:
            return True
    return False


def _named(hops: Sequence[_Hop], nodes: Iterable[Any]) -> list[_Hop]:
    """The hops, without the nodes that their engine does not name among its sources."""
    names = {each.node.node_id for each in nodes}
    kept = [
        replace(hop, nodes=[each for each in hop.nodes if hop.behind or each.node.node_id in names])
        for hop in hops
    ]
    return [hop for hop in kept if hop.nodes] or list(hops)
