"""From a closed turn to its Record; runs in the Monitor's thread, and only for turns that were picked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steelyard.record import Record, Status, Timings, plain, text_of
from steelyard.recording import Assembled, assemble
from steelyard_langchain._contexts import Found, find_contexts
from steelyard_langchain._extract import answer_of, ends_in_tool_call, pick, question_of, text_in
from steelyard_langchain._nested import outermost, within
from steelyard_langchain._options import Options
from steelyard_langchain._prompts import generation_prompts, reply_text
from steelyard_langchain._shapes import messages_in, role_of, state_of
from steelyard_langchain._turn import Chain, Model, Turn

__all__ = ["build"]

_NOISE_TAGS = (
    "seq:step:",
    "graph:step:",
    "map:key:",
    "langsmith:",
    "retry:attempt:",
    "condition:",
    "branch:",
)
_NOISE_METADATA = ("ls_", "lc_", "langgraph_", "checkpoint", "__", "LANGSMITH_", "LANGCHAIN_", "revision_id")
_UNFINISHED = ("error", "cancelled", "interrupted")


def build(turn: Turn, options: Options, *, chain: Chain | None = None) -> Record | None:
    """Build the Record of a turn, or of one chain within it.

    Returns:
        The Record, or None where nothing was answered out of anything: a chain without a model, a formatter.
    """
    view = View(turn, chain)
    question = _question(view, options)
    found = find_contexts(view, options, question)
    answer = _answer(view, options)
    status = view.status
    if status == "ok" and not answer and ends_in_tool_call(view.outputs):
        status = "interrupted"
    if not _is_turn(view, found, answer, status, options):
        return None
    assembled = _assembled(view, found, answer, options)
    return _with_given(
        Record(
            id=view.id,
            question=question,
            standalone_question=_standalone(view, question),
            contexts=assembled.contexts,
            contexts_source=assembled.contexts_source,
            retrieved=assembled.retrieved,
            stages=found.stages,
            answer=answer,
            reference=_reference(view, options),
            status=status,
            error=_error(view.error) if status == "error" else None,
            trace=turn.trace,
            timings=_timings(view),
            tags=_tags(turn),
            metadata=_metadata(turn, options),
            notes=_notes(view, found, question, answer, status),
        ),
        turn,
    )


class View:
    """A turn, or the part of it that is below one chain."""

    def __init__(self, turn: Turn, chain: Chain | None) -> None:
        self.turn = turn
        self.chain = chain
        whole = chain is None
        self.history = turn.history if whole else []
        self.name = turn.name if chain is None else chain.name
        self.inputs = turn.inputs if chain is None else chain.inputs
        self.outputs = turn.outputs if chain is None else chain.outputs
        self.error = turn.error if chain is None else chain.error
        self.started = turn.started if chain is None else chain.started
        self.ended = turn.ended if chain is None else chain.ended
        self.status: Status = turn.status if chain is None else ("error" if chain.error else "ok")
        self.id = turn.trace.run_id or str(turn.root)
        if chain is not None:
            self.id = f"{self.id}/{chain.key:032x}"
        self.retrievals = [r for r in turn.retrievals.values() if whole or self._below(r.key)]
        self.tools = [t for t in turn.tools.values() if whole or self._below(t.key)]
        self.results = turn.results if whole else [self.outputs]
        self.models = [
            model
            for model in turn.models.values()
            if (whole or self._below(model.key)) and outermost(turn, model.key)
        ]

    def _below(self, key: int) -> bool:
        return self.chain is None or within(self.turn, key, self.chain.key)


def _is_turn(view: View, found: Found, answer: str, status: Status, options: Options) -> bool:
    if view.turn.given is not None:
        return True
    if status in _UNFINISHED:
        return bool(view.models or view.retrievals or view.tools or view.history)
    if view.chain is None and options.nested == "all" and not answer and view.turn.chains:
        return not any(chain.outputs is not None for chain in view.turn.chains.values())
    if view.models:
        return True
    # No model was seen. One may have been called past the framework; a formatter only repeats the documents.
    if not answer or not found.contexts:
        return False
    return not all(context.text in answer for context in found.contexts)


def _question(view: View, options: Options) -> str:
    question = question_of(view.inputs, view.outputs, options.question_key)
    for turn in view.history:
        question = question or question_of(turn.inputs, turn.outputs, options.question_key)
    return question


def _answer(view: View, options: Options) -> str:
    if view.error is not None:
        return ""
    answer = answer_of(view.outputs, view.inputs, options.answer_key)
    if not answer and view.turn.given is not None and view.models:
        answer = reply_text(view.models[-1])
    return answer


def _assembled(view: View, found: Found, answer: str, options: Options) -> Assembled:
    if found.explicit:
        return Assembled(tuple(found.contexts), (), "retrieved")
    chosen, every = generation_prompts(view.models, answer)
    best = assemble(found.contexts, prompts=chosen, source=found.source)
    if best.contexts_source != "in_prompt" and len(every) > len(chosen):
        best = assemble(found.contexts, prompts=every, source=found.source)
    if found.doubtful and best.contexts_source != "in_prompt":
        return Assembled((), (), "retrieved")
    return best


def _standalone(view: View, question: str) -> str | None:
    """The question as a model rewrote it for the retriever, in a conversation.

    Only there: without a history a query is just a query (keywords, a sub-question, an invented answer), and
    what the user asked stands by itself.
    """
    turn = view.turn
    first = next((r for r in view.retrievals if outermost(turn, r.key)), None)
    if first is None or not isinstance(first.query, str) or first.query.strip() in ("", question.strip()):
        return None
    if any(within(turn, first.key, tool) for tool in turn.tools):
        return None
    rewriters = [model for model in view.models if model.started < first.started]
    return text_of(first.query) if rewriters and _in_conversation(view, rewriters) else None


def _in_conversation(view: View, rewriters: list[Model]) -> bool:
    state = state_of(view.inputs) or {}
    if any("history" in str(name).lower() and value for name, value in state.items()):
        return True
    if sum(role_of(message) == "human" for message in messages_in(view.inputs)) > 1:
        return True
    return any(
        role_of(message) == "ai"
        for model in rewriters
        for batch in model.prompt
        if isinstance(batch, (list, tuple))
        for message in batch
    )


def _reference(view: View, options: Options) -> str | None:
    key = options.reference_key
    if key is None:
        return None
    found = pick(view.inputs, key)
    if found is None and isinstance(key, str):
        found = (view.turn.metadata or {}).get(key)
    return text_in(found) or None


def _error(error: BaseException | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {text_of(error)}"


def _timings(view: View) -> Timings:
    turn = view.turn
    retrieval = [r.ended - r.started for r in view.retrievals if r.ended and outermost(turn, r.key)]
    generation = [m.ended - m.started for m in view.models if m.ended]
    return Timings(
        started_at=turn.started_at + (view.started - turn.started),
        total=None if view.ended is None else view.ended - view.started,
        retrieval=sum(retrieval) if retrieval else None,
        generation=sum(generation) if generation else None,
    )


def _tags(turn: Turn) -> tuple[str, ...]:
    return tuple(text_of(tag) for tag in turn.tags or () if not str(tag).startswith(_NOISE_TAGS))


def _metadata(turn: Turn, options: Options) -> dict[str, Any]:
    own = {
        name: value
        for name, value in dict(turn.metadata or {}).items()
        if not str(name).startswith(_NOISE_METADATA)
    }
    added = options.metadata
    if callable(added):
        added = added(turn.metadata or {})
    kept: dict[str, Any] = {**own, **dict(added or {})}
    if turn.name:
        kept.setdefault("run_name", turn.name)
    if turn.feedback is not None:
        kept["feedback"] = turn.feedback
    if all(type(value) is str for value in kept.values()):
        return kept
    return dict(plain(kept))


def _notes(view: View, found: Found, question: str, answer: str, status: Status) -> tuple[str, ...]:
    notes = list(found.notes)
    given = view.turn.given
    if not question and "question" not in (given or ()):
        lack = f"not found in an input of type {_kind(view.inputs)}; set question_key"
        notes.append(f"question: {lack if given is None else 'not given; pass question= to record()'}")
    if not answer and status == "ok" and "answer" not in (given or ()):
        lack = f"not found in an output of type {_kind(view.outputs)}; set answer_key"
        notes.append(f"answer: {lack if given is None else 'not given; set answer on the block'}")
    if status == "ok" and any(model.failed for model in view.turn.models.values()):
        notes.append("error on the way: a model run failed")
    if not view.models and status == "ok":
        notes.append("no model run was seen in this turn")
    return tuple(notes)


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{type(value).__name__} with keys {', '.join(sorted(map(text_of, value)))[:200]}"
    return type(value).__name__


def _with_given(record: Record, turn: Turn) -> Record:
    """The record with the fields that a `record` block was given."""
    if not turn.given:
        return record
    given = dict(turn.given)
    metadata = {**record.metadata, **dict(plain(given.pop("metadata", None) or {}))}
    tags = (*record.tags, *given.pop("tags", ()))
    contexts = given.pop("contexts", None)
    if contexts is not None:
        given["contexts"], given["retrieved"] = tuple(contexts), ()
    return replace(record, metadata=metadata, tags=tags, **given)
