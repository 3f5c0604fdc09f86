"""Where the answer of a turn came from: its model calls, its question, and what stood in the prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from steelyard.record import Context
from steelyard.recording.provenance import (
    Asked,
    ModelCall,
    Provenance,
    cut_from_prompt,
    find_passages,
    judge_turn,
    notes_on_predecessors,
    question_in_prompt,
    sentence,
    trace_provenance,
    user_question,
)
from steelyard_llamaindex._turn import Turn
from steelyard_llamaindex.building._contexts import TurnContexts
from steelyard_llamaindex.building._extract import (
    NO_ANSWER,
    is_conversation,
    nodes_of,
    question_of,
    reply_of,
    texts_of,
)

LOOSE = "no run holds the retrieval and this call together; `with record(question):` around both does"
"""Note of a turn that was put together out of calls in one task."""


_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


def model_calls(turn: Turn) -> tuple[ModelCall, ...]:
    """The model calls of a turn; of a stream that was left early, with what was read of it."""
    calls = []
    for call in turn.calls:
        reply, arguments = reply_of(call.reply if call.reply is not None else _result(call.step))
        calls.append(
            ModelCall(
                prompts=texts_of(call.asked),
                reply=reply,
                arguments=arguments,
                started=call.began,
                name=call.step.name,
            )
        )
    # What the reader saw of it is the reply of the call that was still open.
    if turn.streaming and turn.pieces:
        open_ = [at for at, call in enumerate(calls) if not call.replies]
        if open_:
            calls[open_[-1]] = replace(calls[open_[-1]], reply="".join(turn.pieces))
    return tuple(calls)


def _result(step: Any) -> Any:
    return step.result if step.kind == "llm" else None


class Evidence:
    """What is known of a turn from its texts.

    Attributes:
        calls: The model calls of the turn.
        asked: What the user asked.
        sources: What the answer is judged by.
        is_turn: False for a workflow that retrieved nothing and showed a model no passages, and for a
            call that used nothing of what was retrieved before it.
    """

    def __init__(self, turn: Turn, hops: TurnContexts, answer: str) -> None:
        self._turn, self._hops, self._answered = turn, hops, bool(answer) and turn.status != "error"
        self.calls = model_calls(turn)
        self.asked = self._asked()
        contexts, self._notes = hops.passages(self.asked.question)
        self.sources = self._sources(contexts, answer)
        found = bool(hops.hops or hops.retrievals or contexts)
        # A loose call is a turn by what was retrieved before it, and by nothing else.
        if not found and not turn.loose:
            self.sources = cut_from_prompt(self.sources, self.calls, question=self.asked.question)
            found = bool(self.sources.contexts and self.asked.question)
        self.is_turn = turn.root.kind != "workflow" or found
        self._settle(answer)
        # Last, for deciding about a loose call changes what was retrieved.
        self.sources = replace(self.sources, retrieved=self._retrieved())
        if turn.given and "contexts" in turn.given:
            self.sources = with_contexts(
                self.sources, turn.given["contexts"], self.calls, self.asked.question
            )

    def notes(self) -> list[str]:
        """What is lost or doubtful; nothing about an answer that there is not."""
        notes = [*self._notes, *map(sentence, self.asked.notes)]
        if self._answered:
            notes += self.sources.notes
            notes += (
                f"contexts: the text of tool {name!r} counts, as its name says that it searches"
                for name in self._hops.searching_tools
            )
            if not self.sources.contexts and self._hops.unnamed_tools:
                named = ", ".join(map(repr, self._hops.unnamed_tools))
                notes.append(f"tools returned text that counts only if named in tool_contexts: {named}")
        return notes

    def _asked(self) -> Asked:
        """What the root was called with, or else what was searched for."""
        queries = [hop.query for hop in self._hops.hops]
        own = question_of(self._turn.root.asked)
        if not own.strip():
            replies = [text for call in self.calls for text in call.replies]
            asked = user_question((), queries=queries, replies=replies)
            # One query may well be the question; of several it is only the first of what was made of it.
            several = len({query.strip() for query in queries} - {""}) > 1
            return replace(asked, notes=asked.notes or ("question_rewritten_only",)) if several else asked
        message = {"role": "user", "content": own}
        asked = user_question([message], queries=queries, in_conversation=self._turn.root.kind == "chat")
        return replace(asked, question=own)

    def _sources(self, contexts: Sequence[Context], answer: str) -> Provenance:
        question = self.asked.question
        queries = (question_of(step.asked) for step in self._turn.steps if step.kind == "retrieve")
        return trace_provenance(
            contexts,
            self.calls,
            answer=answer,
            question=question,
            # A retriever is mostly asked the question itself, which a call may well repeat.
            queries=[query for query in queries if query.strip() != question.strip()],
            source="tool" if self._turn.root.kind == "agent" else "retrieved",
        )

    def _settle(self, answer: str) -> None:
        """Decide about a call that no run holds, and about an engine that left out what it retrieved."""
        if self._turn.loose:
            self._be_loose()
        elif self._turn.root.kind == "synthesis":
            self._be_given_nodes()
        elif answer == NO_ANSWER and not self.calls and nodes_of(self._turn.root.result) == []:
            # Whatever was retrieved was left out on the way: too unlike the question, say.
            self.sources = replace(self.sources, contexts=(), retrieved=self.sources.contexts, notes=())

    def _be_loose(self) -> None:
        """Decide about a call that no run holds together with the retrievals before it."""
        calls, sources = self.calls, self.sources
        used = {one.text for one in sources.contexts if one.seen}
        said = [text for at in sources.calls.made for text in calls[at].replies]
        verdict = judge_turn(calls, answer=said[0] if len(said) == 1 else "")
        # Shown to the model, and used by it: either alone may be chance.
        self.is_turn = sources.contexts_source == "in_prompt" and bool(used) and verdict.is_turn
        self._notes.append(LOOSE)
        if self._turn.root.kind != "synthesis":
            self.asked = self._asked_loosely(used)

    def _be_given_nodes(self) -> None:
        """Decide about a synthesizer that was given nodes which no retriever returned."""
        self._notes.append(LOOSE)
        # What has no question mark is mostly an instruction for an index: a summary of each document.
        self.is_turn = self.asked.question.rstrip().endswith(_QUESTION_MARKS)

    def _asked_loosely(self, used: set[str]) -> Asked:
        """The question of such a call: the query that its prompt repeats, or what the prompt names."""
        prompts = [text for at in self.sources.calls.all for text in self.calls[at].prompts]
        queries = [query for query, texts in self._hops.by_hop() if query and not used.isdisjoint(texts)]
        shown = (query for query in queries if any(query in text for text in prompts))
        named = filter(None, map(question_in_prompt, reversed(prompts)))
        if question := next(shown, "") or next(named, ""):
            return Asked(question=question)
        return Asked(question=next(iter(queries), ""), notes=("question_rewritten_only",))

    def _retrieved(self) -> tuple[Context, ...]:
        """Everything retrieved, where that is more, with what of it stood in the prompts."""
        sources, question = self.sources, self.asked.question
        known = {context.text: context for context in (*sources.retrieved, *sources.contexts)}
        every = {context.text: context for context in self._hops.everything(question)}
        fresh = [context for text, context in every.items() if text not in known]
        if not fresh:
            return sources.retrieved
        known.update((one.text, one) for one in _marked(fresh, sources, self.calls, question))
        return tuple(known[text] for text in every)


def with_contexts(
    found: Provenance, given: Sequence[Context], calls: Sequence[ModelCall], question: str
) -> Provenance:
    """The same with the contexts that a `record` block set: all of them, in the order given."""
    contexts = _marked(given, found, calls, question)
    all_seen = bool(contexts) and all(context.seen for context in contexts)
    return replace(
        found,
        contexts=tuple(contexts),
        retrieved=(),
        contexts_source="in_prompt" if all_seen else "retrieved",
        notes=(),
    )


def _marked(
    contexts: Sequence[Context], found: Provenance, calls: Sequence[ModelCall], question: str
) -> list[Context]:
    """The same contexts, each with the share of it that stood in the prompts of the answer."""
    prompts = [text for at in found.calls.all for text in calls[at].prompts if text]
    if not prompts:
        return list(contexts)
    sightings = find_passages([context.text for context in contexts], prompts, question=question)
    return [
        replace(context, seen=None if there.found is None else there.seen if there.found else 0.0)
        for context, there in zip(contexts, sightings, strict=True)
    ]


def notes_on_latest(
    turn: Turn, question: str, calls: Sequence[ModelCall], *, found: Sequence[str]
) -> list[str]:
    """Say that a turn's question, or a part of its prompt, was written by a model in a run before it."""
    if turn.loose or not turn.predecessors:
        return []
    earlier = [
        ModelCall(prompts=one.prompts, reply=reply, arguments=arguments)
        for one in turn.predecessors
        if one.prompts and one.ended < turn.root.began
        for reply, arguments in (reply_of(one.reply),)
    ]
    first = turn.calls[0].asked if turn.calls else None
    return notes_on_predecessors(
        question,
        calls,
        earlier,
        found=found,
        in_conversation=turn.root.kind == "chat" or is_conversation(first),
    )
