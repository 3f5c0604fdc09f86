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
    find_passages,
    judge_turn,
    question_in_prompt,
    sentence,
    trace_provenance,
    user_question,
)
from steelyard_llamaindex._contexts import TurnContexts
from steelyard_llamaindex._extract import question_of, reply_of, texts_of
from steelyard_llamaindex._turn import Turn

LOOSE = "no run holds the retrieval and this call together; `with record(question):` around both does"
"""Note of a turn that was put together out of calls in one task."""


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
    if turn.streaming and turn.pieces:
        open_ = [at for at, call in enumerate(calls) if not call.replies]
        if open_:
            calls[open_[-1]] = replace(calls[open_[-1]], reply="".join(turn.pieces))
    return tuple(calls)


def _result(step: Any) -> Any:
    return step.result if step.kind == "llm" else None


def asked_of(turn: Turn, calls: Sequence[ModelCall], queries: Sequence[str]) -> Asked:
    """What the user asked: what the root was called with, or else what was searched for."""
    own = question_of(turn.root.asked)
    if own.strip():
        found = user_question(
            [{"role": "user", "content": own}], queries=queries, in_conversation=turn.root.kind == "chat"
        )
        return replace(found, question=own)
    replies = [text for call in calls for text in call.replies]
    return user_question((), queries=queries, replies=replies)


def loose_asked(
    turn: Turn, calls: Sequence[ModelCall], found: Provenance, hops: TurnContexts
) -> Asked | None:
    """What was asked in calls that no run holds; None where the call did not use what was retrieved."""
    answer = [text for at in found.calls.made for text in calls[at].replies]
    used = [one for one in found.contexts if one.seen]
    if found.contexts_source != "in_prompt" or not used:
        return None
    if not judge_turn(calls, answer=answer[0] if len(answer) == 1 else "").is_turn:
        return None
    if turn.root.kind == "synthesis":
        return Asked(question=question_of(turn.root.asked))
    prompts = [text for at in found.calls.all for text in calls[at].prompts]
    texts = {one.text for one in used}
    queries = [query for query, passages in hops.by_hop() if not texts.isdisjoint(passages)]
    shown = next((query for query in queries if query and any(query in text for text in prompts)), "")
    shown = shown or next(filter(None, map(question_in_prompt, reversed(prompts))), "")
    if shown:
        return Asked(question=shown)
    return Asked(question=queries[0] if queries else "", notes=("question_rewritten_only",))


def provenance_of(
    turn: Turn, contexts: Sequence[Context], calls: Sequence[ModelCall], *, answer: str, question: str
) -> Provenance:
    """What the answer is judged by, with notes on what is doubtful."""
    queries = [question_of(step.asked) for step in turn.steps if step.kind == "retrieve"]
    return trace_provenance(
        contexts,
        calls,
        answer=answer,
        question=question,
        # A retriever is mostly asked the question itself, which a call may well repeat.
        queries=[query for query in queries if query.strip() != question.strip()],
        source="tool" if turn.root.kind == "agent" else "retrieved",
    )


def retrieved_of(
    found: Provenance, everything: Sequence[Context], calls: Sequence[ModelCall], question: str
) -> tuple[Context, ...]:
    """Everything retrieved, where that is more than the contexts, with what of it stood in the prompts."""
    known = {context.text: context for context in (*found.retrieved, *found.contexts)}
    unique = {context.text: context for context in everything}
    fresh = [context for text, context in unique.items() if text not in known]
    if not fresh:
        return found.retrieved
    prompts = [text for at in found.calls.all for text in calls[at].prompts if text]
    if not prompts:
        return tuple(known.get(text, context) for text, context in unique.items())
    sightings = find_passages([context.text for context in fresh], prompts, question=question)
    for context, sighting in zip(fresh, sightings, strict=True):
        share = None if sighting.found is None else sighting.seen if sighting.found else 0.0
        unique[context.text] = replace(context, seen=share)
    return tuple(known.get(text, context) for text, context in unique.items())


def notes_of(found: Provenance, asked: Asked, hops: TurnContexts, *, answered: bool) -> list[str]:
    """What is lost or doubtful; nothing about an answer that there is not."""
    notes = [sentence(note) for note in asked.notes]
    if answered:
        notes += found.notes
        if not found.contexts and hops.unnamed_tools:
            named = ", ".join(map(repr, hops.unnamed_tools))
            notes.append(f"tools returned text that counts only if they are named in tool_contexts: {named}")
    return notes
