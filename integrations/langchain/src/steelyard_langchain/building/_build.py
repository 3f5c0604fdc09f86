"""From a closed turn to its Record; runs in the Monitor's thread.

A turn that the Monitor's rates leave out is never built; where rules, `choose` or a suspicion look at
Records, every turn that could still be selected is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from steelyard.record import Record, Status, TraceRef, text_of
from steelyard.recording import TurnDraft, with_given
from steelyard.recording.provenance import (
    Asked,
    ModelCall,
    Provenance,
    calls_behind,
    is_helper_reply,
    judge_turn,
    notes_on_predecessors,
    sentence,
)
from steelyard_langchain._options import Options
from steelyard_langchain._turn import Chain, Turn
from steelyard_langchain.building._asked import (
    asked_at_root,
    asked_in_call,
    asked_in_filled_prompt,
    asked_in_prompts,
    in_conversation,
)
from steelyard_langchain.building._calls import calls_of, said_before
from steelyard_langchain.building._contexts import Found, decide, find_contexts
from steelyard_langchain.building._extract import (
    answer_of,
    documents_in,
    ends_in_tool_call,
    is_document,
    pick,
    replies_in,
    text_in,
)
from steelyard_langchain.building._forms import filled_form
from steelyard_langchain.building._separate import (
    SEPARATE,
    is_answer,
    reads_tools,
    since_the_question,
    told_by_messages,
)
from steelyard_langchain.building._view import View, id_of, metadata_of, tags_of, timings_of
from steelyard_langchain.building._weight import weigh, without_media

_PER_RUN = 500
_UNFINISHED = ("error", "cancelled", "interrupted")


class LangChainDraft(TurnDraft):
    """A closed turn whose Record is built when the Monitor asks for it."""

    __slots__ = ("_chain", "_options", "_size", "_unused", "turn")

    def __init__(
        self,
        turn: Turn,
        options: Options,
        *,
        chain: Chain | None = None,
        unused: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(on_record=options.on_record)
        self.turn = turn
        self._options = options
        self._chain = chain
        self._unused = unused
        self._size: int | None = None

    @property
    def id(self) -> str:
        """The id that the Record will have."""
        return id_of(self.turn, self._chain)

    @property
    def trace(self) -> TraceRef:
        """Where the turn lives in the host's traces."""
        return self.turn.trace

    @property
    def size(self) -> int:
        """Roughly how many bytes it keeps alive: all texts, and a constant for every run and value.

        Images and other media in prompts and messages are let go first.
        """
        if self._size is None:
            try:
                self._size = _weigh(self.turn)
            except Exception:  # noqa: BLE001 - objects of the host may raise anything, anywhere
                self._size = _PER_RUN * (len(self.turn.parents) + 1)
        return self._size

    def read(self) -> Record | None:
        """The Record; None where the run was not a RAG turn."""
        record = build(self.turn, self._options, chain=self._chain)
        if record is None and self._unused is not None:
            self._unused()
        return record


def _weigh(turn: Turn) -> int:
    weight = weigh(turn.kept())
    if weight.has_media:
        for each in (*turn.history, turn):
            each.let_go(without_media)
        weight = weigh(turn.kept())
    return weight.size + _PER_RUN * (len(turn.parents) + 1)


def build(turn: Turn, options: Options, *, chain: Chain | None = None) -> Record | None:
    """Build the Record of a turn, or of one chain within it.

    Returns:
        The Record, or None where nothing was answered out of anything: a chain without a model, a formatter.
    """
    view = View(turn, chain)
    if turn.loose and turn.key in turn.models:
        return _separate(view, options)
    calls = calls_of(view.models)
    replies = {call.reply.strip() for call in calls if call.reply.strip()}
    asked, found = _asked_and_found(view, options, replies)
    answer = _answer(view, options, replies, calls)
    status = view.status
    if (
        status == "ok"
        and not answer
        and options.answer_key is None
        and (form := filled_form(view.outputs, calls))
    ):
        # Fields taken out of a text, or a plan: nothing was looked up, and nobody is answered.
        if not found.any:
            return None
        answer = form
    if status == "ok" and not answer and ends_in_tool_call(view.outputs):
        status = "interrupted"
    if not _is_turn(view, found, calls, asked.question, answer, status, options):
        return None
    origin = _origin(view, found, calls, answer, asked.question)
    asked = asked_in_prompts(view, asked, calls, origin)
    return _record(view, options, asked, answer, found, origin, status)


def _asked_and_found(view: View, options: Options, replies: set[str]) -> tuple[Asked, Found]:
    """What the root was asked, and what was found; of a whole prompt that it was given, its question."""
    asked = asked_at_root(view, options, replies)
    found = find_contexts(view, options, asked.question, sorted(replies))
    within_it = asked_in_filled_prompt(view, asked, found)
    if within_it is asked:
        return asked, found
    found = find_contexts(view, options, within_it.question, sorted(replies))
    found.notes += map(sentence, within_it.notes)
    return within_it, found


def _separate(view: View, options: Options) -> Record | None:
    """The Record of a model call that nothing holds together with what was retrieved before it."""
    if not any(earlier.tools for earlier in view.nearby) and (told := told_by_messages(view)) is not None:
        view.nearby = (*view.nearby, told)
    calls = calls_of([since_the_question(view.models[0])])
    answer = calls[0].reply
    found = find_contexts(view, options, "", [answer])
    origin = decide(found, calls, answer=answer, question="")
    asked = asked_in_call(view, origin)
    if not is_answer(view, calls[0], origin, asked):
        return None
    found.notes += [SEPARATE, *map(sentence, asked.notes), *(found.unnamed[:1] if reads_tools(view) else ())]
    return _record(view, options, asked, answer, found, origin, view.status)


def _record(
    view: View,
    options: Options,
    asked: Asked,
    answer: str,
    found: Found,
    origin: Provenance,
    status: Status,
) -> Record:
    turn = view.turn
    return with_given(
        Record(
            id=view.id,
            question=asked.question,
            standalone_question=asked.standalone,
            contexts=origin.contexts,
            contexts_source=origin.contexts_source,
            retrieved=origin.retrieved,
            stages=found.stages,
            answer=answer,
            reference=_reference(view, options),
            status=status,
            error=_error(view.error) if status == "error" else None,
            trace=turn.trace,
            timings=timings_of(view),
            tags=tags_of(turn),
            metadata=metadata_of(turn, options),
            notes=_notes(view, found, origin, asked.question, answer, status),
        ),
        turn.given,
    )


def _is_turn(
    view: View,
    found: Found,
    calls: list[ModelCall],
    question: str,
    answer: str,
    status: Status,
    options: Options,
) -> bool:
    if view.turn.given is not None:
        return True
    if status in _UNFINISHED:
        return bool(view.models or view.retrievals or view.tools or view.history)
    if view.chain is None and options.nested == "all" and not answer and view.turn.chains:
        return all(chain.outputs is None for chain in view.turn.chains.values())
    if not answer and isinstance(view.outputs, list) and documents_in(view.outputs):
        return False  # the searching half of a chain: HyDE, several queries
    if not view.models:
        return _is_answered_unseen(found, answer)
    retrieved = bool(view.retrievals or view.tools)
    if _is_step(view, question, answer, retrieved=retrieved):
        return False
    return judge_turn(calls, answer=answer, retrieved=retrieved).is_turn


def _is_answered_unseen(found: Found, answer: str) -> bool:
    """Whether a model may have been called past the framework; a formatter only repeats the documents."""
    candidates = found.contexts or found.made
    return bool(answer and candidates) and not all(context.text in answer for context in candidates)


def _is_step(view: View, question: str, answer: str, *, retrieved: bool) -> bool:
    """Whether a run that looked nothing up is a step of something else, by what it was given and returned.

    A document instead of a question is being indexed: summarised, or described by questions that it answers.
    """
    if retrieved:
        return False
    if not question and is_document(view.inputs):
        return True
    outputs = view.outputs
    listed = isinstance(outputs, list) and bool(outputs) and all(isinstance(one, str) for one in outputs)
    return listed and not answer


def _answer(view: View, options: Options, replies: set[str], calls: list[ModelCall]) -> str:
    if view.error is not None:
        return ""
    answer = answer_of(view.outputs, view.inputs, options.answer_key, replies=replies)
    if not answer and view.turn.given is not None and calls:
        answer = calls[-1].reply
    return answer


def _origin(view: View, found: Found, calls: list[ModelCall], answer: str, question: str) -> Provenance:
    given = view.turn.given or {}
    answer = str(given.get("answer") or answer)
    if found.explicit:
        behind = calls_behind(calls, answer)
        return Provenance(
            contexts=tuple(found.contexts), retrieved=(), contexts_source="retrieved", calls=behind, notes=()
        )
    if not answer and calls and not calls[-1].replies:
        calls = calls[-1:]  # the run was broken off while this one was at it
    if len(calls) == 1 and not is_helper_reply(calls[0].replies) and _stands_in(calls[0].reply, answer):
        answer = calls[0].reply  # the only one, however short it is
    return decide(found, calls, answer=answer, question=str(given.get("question") or question))


def _stands_in(reply: str, answer: str) -> bool:
    plain = reply.strip().rstrip(".")
    return bool(plain) and plain in answer


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


def _notes(
    view: View, found: Found, origin: Provenance, question: str, answer: str, status: Status
) -> tuple[str, ...]:
    notes = [*found.notes, *_lacks(view, question, answer, status)]
    if status != "ok":
        return tuple(notes)
    if any(model.failed for model in view.turn.models.values()):
        notes.append("error on the way: a model run failed")
    doubts = _doubts(view, found, origin) if view.models else ["no model run was seen in this turn"]
    unknown = sentence("answer_call_unknown")
    notes += [note for note in doubts if answer or note != unknown]
    if not view.turn.loose:
        notes += _on_predecessors(view, found, question)
    return tuple(notes)


def _lacks(view: View, question: str, answer: str, status: Status) -> Iterator[str]:
    """What the Record lacks, and the option or the argument that tells it."""
    given = view.turn.given
    if not question and "question" not in (given or ()):
        lack = f"not found in an input of type {_kind(view.inputs)}; set question_key"
        yield f"question: {lack if given is None else 'not given; pass question= to record()'}"
    if not answer and status == "ok" and "answer" not in (given or ()):
        lack = f"not found in an output of type {_kind(view.outputs)}; set answer_key"
        yield f"answer: {lack if given is None else 'not given; set answer on the block'}"
    if answer and given is None and (several := replies_in(view.outputs)) > 1:
        yield f"answer: the run returned {several}, and this is the last; ask one a run, or set nested='all'"


def _on_predecessors(view: View, found: Found, question: str) -> list[str]:
    return notes_on_predecessors(
        question,
        calls_of(view.models),
        [call for one in view.predecessors if (call := said_before(one, view.started)) is not None],
        found=[context.text for context in found.contexts],
        in_conversation=in_conversation(view, view.models),
    )


def _doubts(view: View, found: Found, origin: Provenance) -> list[str]:
    """What is doubtful about the contexts."""
    if "contexts" in (view.turn.given or ()) or found.explicit:
        return []
    empty = sentence("no_contexts")
    doubts = [note for note in origin.notes if note != empty]
    if not origin.contexts and not view.retrievals and not found.notes:
        doubts.append(f"{empty}; if the prompt had any, say which: record() and turn.contexts")
    return doubts


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{type(value).__name__} with keys {', '.join(sorted(map(text_of, value)))[:200]}"
    return type(value).__name__
