"""From a closed turn to its Record; runs in the Monitor's thread.

A turn that the Monitor's rates leave out is never built; where rules, `choose` or a suspicion look at
Records, every turn that could still be selected is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.record import Record, Status, Timings, text_of, to_json_value
from steelyard.recording import Assembled, ModelCall, TurnDraft, answering_prompts, assemble, with_given
from steelyard_langchain._contexts import Found, find_contexts
from steelyard_langchain._extract import (
    answer_of,
    ends_in_tool_call,
    message_text,
    messages_in,
    pick,
    prompt_texts,
    question_of,
    role_of,
    state_of,
    text_in,
)
from steelyard_langchain._options import Options
from steelyard_langchain._turn import Chain, Model, Turn, outermost, within

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
_PER_RUN = 500
_LOOKED_AT = 200
_UNFINISHED = ("error", "cancelled", "interrupted")


class LangChainDraft(TurnDraft):
    """A closed turn whose Record is built when the Monitor asks for it."""

    __slots__ = ("_chain", "_options", "turn")

    def __init__(self, turn: Turn, options: Options, *, chain: Chain | None = None) -> None:
        super().__init__(_id_of(turn, chain), turn.trace, on_record=options.on_record)
        self.turn = turn
        self._options = options
        self._chain = chain

    @property
    def size(self) -> int:
        """Roughly how many bytes it keeps alive: the documents, the prompts, and a constant for every run."""
        turn = self.turn
        size = _PER_RUN * (len(turn.parents) + 1)
        try:
            for retrieval in turn.retrievals.values():
                documents = retrieval.documents or ()
                found = sum(len(document.page_content) for document in documents[:_LOOKED_AT])
                size += found * max(1, len(documents) // _LOOKED_AT)
            for model in turn.models.values():
                for messages in model.prompt:
                    last = messages if isinstance(messages, str) else messages[-1].content
                    size += len(last)
        except Exception:  # noqa: BLE001 - documents without text, prompts of a shape of their own
            size += _PER_RUN
        return size

    def read(self) -> Record | None:
        """The Record; None where the run was not a RAG turn."""
        return build(self.turn, self._options, chain=self._chain)


def _id_of(turn: Turn, chain: Chain | None) -> str:
    root = turn.trace.run_id or str(turn.root)
    return root if chain is None else f"{root}/{chain.key:032x}"


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
    return with_given(
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
        turn.given,
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
        self.id = _id_of(turn, chain)
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
    calls = [ModelCall(tuple(prompt_texts(model.prompt)), reply_text(model)) for model in view.models]
    chosen = answering_prompts(calls, answer)
    every = [text for call in calls for text in call.prompts]
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
    return dict(to_json_value(kept))


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


def reply_text(model: Model) -> str:
    """What a model run replied, as text; empty while it runs, and for tool calls."""
    generations: Any = getattr(model.reply, "generations", None) or ()
    for batch in generations:
        for generation in batch:
            message = getattr(generation, "message", None)
            return message_text(message) if message is not None else str(getattr(generation, "text", ""))
    return message_text(model.reply) if hasattr(model.reply, "content") else ""
