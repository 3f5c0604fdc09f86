"""From the steps of a finished turn to its Record: the work that is done in the Monitor's thread."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.record import Context, ContextsSource, Record, Stage, Timings, TraceRef, plain, text_of
from steelyard.recording import Assembled, assemble, mark_in_prompt, unique
from steelyard_llamaindex._extract import (
    answer_of,
    contexts_of,
    get,
    nodes_of,
    prompt_of,
    question_of,
    result_of,
    trouble_of,
)
from steelyard_llamaindex._open_turns import Step, Turn
from steelyard_llamaindex._options import Options

__all__ = ["TurnDraft"]

_logger = logging.getLogger("steelyard.llamaindex")

_SETTINGS = ("reference", "reference_contexts", "tags")
_OWN_TAGS = "llamaindex."
_COMPOSED = ("query", "chat", "tool")


@dataclass(slots=True)
class _Hop:
    """One retrieval of the turn, with what came of it."""

    query: str
    nodes: list[Any]
    composed: bool
    """Whether a query engine answered from it, rather than a bare retriever."""


@dataclass(slots=True)
class TurnDraft:
    """A finished turn of LlamaIndex whose Record is still to be built."""

    turn: Turn
    options: Options

    @property
    def id(self) -> str:
        """The id of the root span."""
        return self.turn.id

    @property
    def trace(self) -> TraceRef | None:
        """The span that was current when the turn began."""
        return self.turn.trace

    @property
    def size(self) -> int:
        """Roughly how many bytes it keeps alive: a node is taken for 2 kB, since measuring costs more."""
        steps = (step.result for step in self.turn.steps)
        nodes = sum(len(result) for result in steps if isinstance(result, list))
        return 2000 + 2000 * nodes + 4000 * len(self.turn.prompts) + 10 * len(self.turn.pieces)

    def build(self) -> Record | None:
        """The Record; None for a workflow that retrieved nothing, which is no RAG turn."""
        record = self._record()
        if record is None or self.options.on_record is None:
            return record
        try:
            return self.options.on_record(record) or record
        except Exception:
            _logger.exception("on_record raised; the record goes on unchanged")
            return record

    def _record(self) -> Record | None:
        turn = self.turn
        hops = self._hops(turn.root) or self._tool_results()
        if turn.root.kind == "workflow" and not hops and not self._retrievals():
            return None
        question = question_of(turn.root.asked) or (hops[0].query if hops else "")
        contexts, notes = self._contexts(hops, question)
        answer = self._answer()
        assembled, retrieved = self._assembled(hops, contexts, question)
        status, error = turn.status, turn.error
        if status == "ok" and (trouble := trouble_of(answer, turn.failure)) is not None:
            status, error, answer = "error", trouble, ""
        elif status == "ok" and turn.failure is not None:
            notes.append(f"a step failed and the run went on: {turn.failure}")
        tags = _Tags(turn.tags)
        return Record(
            id=turn.id,
            question=question,
            standalone_question=self._standalone(question),
            contexts=assembled.contexts,
            contexts_source=assembled.contexts_source,
            retrieved=retrieved,
            stages=tuple(self._stages()),
            answer=answer,
            reference=tags.reference,
            reference_contexts=tags.reference_contexts,
            status=status,
            error=error,
            trace=turn.trace,
            timings=self._timings(),
            tags=tags.tags,
            metadata=tags.metadata,
            notes=tuple(notes),
        )

    def _answer(self) -> str:
        turn = self.turn
        if turn.streaming:
            return text_of("".join(turn.pieces)).strip()
        answer = answer_of(turn.root.result)
        return answer or (answer_of(turn.said) if turn.root.kind == "manual" else "")

    def _contexts(self, hops: Sequence[_Hop], question: str) -> tuple[list[Context], list[str]]:
        """The passages the answer rests on, retrieval by retrieval, and notes on what has no text."""
        found = [context for n, hop in enumerate(hops) for context in self._passages(hop, n, question)]
        silent = sum(len(hop.nodes) for hop in hops) - len(found)
        notes = [f"{silent} retrieved nodes have no text"] if silent else []
        return found + self._tool_texts(len(hops)), notes

    def _passages(self, hop: _Hop, number: int, question: str) -> list[Context]:
        query = hop.query if hop.query.strip() != question.strip() else ""
        return contexts_of(
            hop.nodes, query=query or None, hop=number, with_metadata=self.options.node_text == "llm"
        )

    def _hops(self, step: Step) -> list[_Hop]:
        """The retrievals of a step, each with the nodes that came out at the end of it.

        What a component returns stands for what its parts returned: a fused retriever for those it fuses, an
        engine with a reranker for its retriever. An engine made of engines is the exception, since it answers
        from their answers: what they returned is kept, as far as it says so itself.
        """
        inner = [hop for child in self.turn.steps if child.parent is step for hop in self._hops(child)]
        own = nodes_of(result_of(step.result))
        if not own:
            return inner
        asked = question_of(step.asked)
        if any(hop.composed for hop in inner) and step.kind != "retrieve":
            return _named(inner, own)
        query = inner[0].query if len(inner) == 1 and inner[0].query else asked
        return [_Hop(query, own, step.kind in _COMPOSED)]

    def _tool_results(self) -> list[_Hop]:
        """Nodes in an agent's own account of its tools, where the tools ran unseen."""
        calls = get(result_of(self.turn.root.result), "tool_calls")
        calls = calls if isinstance(calls, (list, tuple)) else ()
        hops = [_Hop("", nodes_of(get(call, "tool_output")), False) for call in calls]
        return [hop for hop in hops if hop.nodes]

    def _tool_texts(self, hop: int) -> list[Context]:
        """The texts of the tools that the user named as evidence."""
        outputs = [step.result for step in self.turn.steps if step.kind == "tool" and step.result is not None]
        named = [each for each in outputs if get(each, "tool_name") in self.options.tool_contexts]
        texts = [text_of(each.content).strip() for each in named if not nodes_of(each)]
        return [Context(text=text, hop=hop + number) for number, text in enumerate(texts) if text]

    def _retrievals(self) -> list[Step]:
        """The outermost retrieval steps."""
        steps = [step for step in self.turn.steps if step.kind == "retrieve"]
        return [step for step in steps if not _inside(step, "retrieve")]

    def _assembled(
        self, hops: Sequence[_Hop], contexts: list[Context], question: str
    ) -> tuple[Assembled, tuple[Context, ...]]:
        """The contexts to judge by, and everything retrieved where that is more."""
        prompts = [prompt_of(prompt) for prompt in self.turn.prompts]
        source: ContextsSource = "tool" if self.turn.root.kind == "agent" else "retrieved"
        assembled = assemble(contexts, prompts=prompts, source=source)
        everything = self._everything(hops, question)
        if assembled.contexts_source == "in_prompt":
            everything = list(mark_in_prompt(everything, prompts))
        kept = {context.text for context in assembled.contexts}
        if all(context.text in kept for context in everything):
            return assembled, assembled.retrieved
        return assembled, unique(everything)

    def _everything(self, hops: Sequence[_Hop], question: str) -> list[Context]:
        """What the retrievers returned; nothing where all of it is in the hops already."""
        found = [_Hop(question_of(step.asked), nodes_of(step.result), False) for step in self._retrievals()]
        used = {id(each.node) for hop in hops for each in hop.nodes}
        if all(id(each.node) in used for hop in found for each in hop.nodes):
            return []
        return [context for n, hop in enumerate(found) for context in self._passages(hop, n, question)]

    def _standalone(self, question: str) -> str | None:
        """How a chat engine rewrote the question: what it asked first."""
        if self.turn.root.kind != "chat":
            return None
        asked = (
            question_of(step.asked) for step in self.turn.steps[1:] if step.kind in ("query", "retrieve")
        )
        standalone = next(asked, "").strip()
        return standalone if standalone and standalone != question.strip() else None

    def _stages(self) -> Iterable[Stage]:
        for step in self.turn.steps:
            if step.kind == "retrieve" and _inside(step, "retrieve"):
                query = question_of(step.asked)
                nodes = nodes_of(step.result)
                contexts = contexts_of(
                    nodes, query=None, hop=0, with_metadata=self.options.node_text == "llm"
                )
                yield Stage(name=step.name, query=query, contexts=tuple(contexts))

    def _timings(self) -> Timings:
        turn = self.turn
        seconds = [step.seconds for step in self._retrievals() if step.seconds is not None]
        return Timings(
            started_at=turn.started,
            total=turn.root.seconds,
            retrieval=sum(seconds) if seconds else None,
            generation=turn.generation or None,
        )


class _Tags:
    """What the user said with `instrument_tags`: some names are settings, the rest is metadata."""

    def __init__(self, given: Any) -> None:
        tags = given.get("tags")
        self.tags = tuple(map(text_of, [tags] if isinstance(tags, str) else tags or ()))
        reference = given.get("reference")
        self.reference = None if reference is None else text_of(reference)
        expected = given.get("reference_contexts") or ()
        texts: Sequence[Any] = [expected] if isinstance(expected, str) else expected
        self.reference_contexts = tuple(Context(text=text_of(text)) for text in texts)
        self.metadata: dict[str, Any] = plain(
            {
                name: value
                for name, value in given.items()
                if name not in _SETTINGS and not str(name).startswith(_OWN_TAGS)
            }
        )


def _named(hops: Sequence[_Hop], nodes: Iterable[Any]) -> list[_Hop]:
    """The hops, without the nodes that their engine does not name among its sources."""
    names = {each.node.node_id for each in nodes}
    kept = [
        _Hop(hop.query, [each for each in hop.nodes if each.node.node_id in names], hop.composed)
        for hop in hops
    ]
    return [hop for hop in kept if hop.nodes] or list(hops)


def _inside(step: Step, kind: str) -> bool:
    parent = step.parent
    while parent is not None:
        if parent.kind == kind:
            return True
        parent = parent.parent
    return False
