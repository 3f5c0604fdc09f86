"""From a closed turn to its Record; runs in the Monitor's thread.

A turn that the Monitor's rates leave out is never built; where rules, `choose` or a suspicion look at
Records, every turn that could still be selected is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from steelyard.record import Context, Record, Status, TraceRef, text_of
from steelyard.recording import TurnDraft, session_of, with_given
from steelyard.recording.building import (
    Asked,
    Sources,
    Steps,
    asked_of,
    asks_of_reply,
    decide,
    edited,
    is_telling,
    named_in_form,
    only_searches,
    sources_of,
    told,
)
from steelyard.recording.explaining import origins_of
from steelyard.recording.provenance import (
    ModelCall,
    Origin,
    calls_behind,
    is_intermediate_output,
    is_turn,
    plain,
)
from steelyard.recording.reading import contexts_of, documents_in, since_last_asked, strings_in
from steelyard_langchain._extract import answer_of, ends_in_tool_call, pick, text_in, without_queries
from steelyard_langchain._forms import called_form, filled_form, last_form
from steelyard_langchain._options import Options
from steelyard_langchain._translate import look_ups, turn_of
from steelyard_langchain._turn import Chain, Earlier, Turn
from steelyard_langchain._view import TurnPart, id_of, metadata_of, notes_of, tags_of, timings_of
from steelyard_langchain._weight import weigh, without_media

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
    size, has_media = weigh(turn.kept())
    if has_media:
        for each in (*turn.history, turn):
            each.let_go(without_media)
        size, _ = weigh(turn.kept())
    return size + _PER_RUN * (len(turn.parents) + 1)


def build(turn: Turn, options: Options, *, chain: Chain | None = None) -> Record | None:
    """Build the Record of a turn, or of one chain within it.

    Returns:
        The Record, or None where nothing was answered out of anything: a chain without a model, a formatter.
    """
    view = TurnPart(turn, chain)
    steps = turn_of(view)
    if turn.loose and turn.key in turn.models:
        return _separate(view, steps, options)
    answer, status = _answer(view, steps, options), view.status
    sources = sources_of(steps, tool_contexts=options.tool_contexts)
    if status == "ok" and not answer:
        form = filled_form(view.outputs, view.inputs, steps.calls) if options.answer_key is None else ""
        # Fields taken out of a text, or a plan: nothing was looked up, and nobody is answered.
        if form and not (sources.looked_up or sources.documents):
            return None
        answer, status = _unnamed_answer(view, steps, sources, form, options)
    if not _is_turn(view, steps, sources, answer, status, options):
        return None
    steps.answer = answer
    asked = _asked(view, steps, sources, options)
    origin = _origin(view, steps, sources, answer, asked.question, options)
    return _record(view, steps, options, asked, answer, sources, origin, status)


def _unnamed_answer(
    view: TurnPart, steps: Steps, sources: Sources, form: str, options: Options
) -> tuple[str, Status]:
    """The answer that stands under no name: a form, the last reply or a call; and whether the run is over."""
    if options.answer_key is None:
        form = form or last_form(view.outputs, steps.calls)
        view.is_whole_form = bool(form)
        if answer := form or _last_reply(view, steps, sources):
            return answer, "ok"
    is_stopped = ends_in_tool_call(view.outputs)
    # Without a thread nothing can go on, so that the call is a form.
    answer = called_form(steps.calls) if is_stopped and not view.has_thread else ""
    return answer, "interrupted" if is_stopped and not answer else "ok"


def _asked(view: TurnPart, steps: Steps, sources: Sources, options: Options) -> Asked:
    """What the root was asked, or one of the interrupted turns before it."""
    key = options.question_key
    if key is not None:
        told = text_in(pick(view.inputs, key)) or text_in(pick(view.outputs, key))
        return asked_of(steps, sources, told=told)
    if not view.history:
        return asked_of(steps, sources)
    # What a graph is resumed with answers the graph, and asks nothing.
    first = view.history[0]
    return asked_of(Steps(given=first.inputs, returned=first.outputs, steps=steps.steps), sources)


def _separate(view: TurnPart, steps: Steps, options: Options) -> Record | None:
    """The Record of a model call that nothing holds together with what was looked up before it."""
    step = steps.models[-1]
    call = step.call or ModelCall()
    latest = [one for one in step.messages if one.role == "system"] + since_last_asked(step.messages)
    prompts = tuple(one.text for one in latest if one.text) or call.prompts
    step.messages = tuple(latest)
    step.call = call = replace(call, prompts=prompts)
    steps.given = [{"role": one.role, "content": one.text} for one in latest] or "\n".join(prompts)
    steps.answer = answer = named_in_form(call.reply)
    sources = sources_of(steps, tool_contexts=options.tool_contexts)
    # What was asked of each part that it joins, if it joins any.
    asked = asked_of(steps, sources, told=next((one.given for one in steps.retrievals), None))
    if asks_of_reply(asked, steps):
        return None
    doubtful = "question_guessed" in asked.notes
    origin = decide(steps, sources, answer=answer, question=asked.question, doubtful=doubtful)
    if not _is_answered_from(sources, origin, asked) or not is_turn([call], answer=answer):
        return None
    record = _record(view, steps, options, asked, answer, sources, origin, view.status)
    return replace(record, notes=(SEPARATE, *record.notes))


def _is_answered_from(sources: Sources, origin: Origin, asked: Asked) -> bool:
    """Whether a call by itself was shown passages, or was made after a look-up that found nothing."""
    if sources.looked_up and not sources.documents:
        return True
    used = bool(origin.contexts) and origin.contexts_source in ("in_prompt", "guessed")
    return used and (sources.looked_up or bool(asked.question))


SEPARATE = "no run holds the search and this call together; `with record(...):` around both does"
"""Note of a turn that was put together out of calls in one task."""


def _record(
    view: TurnPart,
    steps: Steps,
    options: Options,
    asked: Asked,
    answer: str,
    sources: Sources,
    origin: Origin,
    status: Status,
) -> Record:
    turn = view.turn
    _consume(view, origin)
    return with_given(
        Record(
            id=view.id,
            question=asked.question,
            standalone_question=asked.standalone,
            contexts=origin.contexts,
            contexts_source=origin.contexts_source,
            retrieved=origin.retrieved,
            stages=sources.look_ups.stages,
            answer=answer,
            reference=_reference(view, options),
            status=status,
            error=_error(view.error) if status == "error" else None,
            trace=turn.trace,
            session=session_of(turn.metadata) or session_of(turn.configurable),
            timings=timings_of(view),
            tags=tags_of(turn),
            metadata=metadata_of(turn, options),
            origins=_origins(steps, options, asked, answer, origin),
            notes=notes_of(view, steps, sources, origin, asked, answer, status, options),
        ),
        _with_shares(turn.given, origin, steps, asked.question),
    )


def _origins(
    steps: Steps, options: Options, asked: Asked, answer: str, origin: Origin
) -> dict[str, tuple[str, ...]]:
    """From where each was taken, with the option that named it."""
    found = origins_of(steps, asked.question, origin, answer)
    if options.context_key is not None and origin.contexts:
        found["contexts"] = ("context_key",) * len(origin.contexts)
    return found


def _with_shares(
    given: Mapping[str, Any] | None, origin: Origin, steps: Steps, question: str
) -> Mapping[str, Any] | None:
    """What a block was given, its passages with the share of each that stood in the prompt."""
    if not given or "contexts" not in given:
        return given
    asked = str(given.get("question") or question)
    return {**given, "contexts": told(given["contexts"], origin, steps, question=asked)}


def _consume(view: TurnPart, origin: Origin) -> None:
    """Let go of the look-ups before the turn that it used, and of those before them: its answer ends them."""
    texts = {one.text for one in origin.contexts}
    used = [at for at, earlier in enumerate(view.nearby) if _brought(view, earlier, texts)]
    for earlier in view.nearby[: max(used, default=-1) + 1]:
        earlier.used_by = view.turn.key


def _brought(view: TurnPart, earlier: Earlier, texts: Collection[str]) -> bool:
    return any(one.text in texts for step in look_ups(view, earlier) for one in step.contexts or ())


def _last_reply(view: TurnPart, steps: Steps, sources: Sources) -> str:
    """What a model said last, if a run returned what was there before alone: its answer left by a stream."""
    if not steps.calls or not isinstance(view.outputs, dict):
        return ""
    given, last = {text for _, text in strings_in(view.inputs)}, steps.calls[-1]
    shown = plain("\n".join(last.prompts))
    fresh = [text for _, text in strings_in(view.outputs) if text not in given and is_telling(text)]
    has_any = sources.looked_up or sources.documents or fresh
    if not has_any or last.arguments or is_intermediate_output(last.replies):
        return ""
    if any(plain(text) not in shown for text in fresh):
        return ""
    view.is_last_reply = bool(last.reply.strip())
    return last.reply.strip()


def _is_turn(
    view: TurnPart, steps: Steps, sources: Sources, answer: str, status: Status, options: Options
) -> bool:
    if view.turn.given is not None:
        return True
    if status in _UNFINISHED:
        return bool(view.models or view.retrievals or view.tools or view.history)
    if view.chain is None and options.nested == "all" and not answer and view.turn.chains:
        return all(chain.outputs is None for chain in view.turn.chains.values())
    # Whatever its prompts say of grades or of queries.
    return _is_only_asked(view, sources, answer) or _answers(view, steps, sources, answer)


def _answers(view: TurnPart, steps: Steps, sources: Sources, answer: str) -> bool:
    """Whether a run answered out of what it found or was given, rather than searched or graded."""
    if not view.is_answered(answer) and only_searches(steps, sources, answer):
        return False  # the searching half of a chain: HyDE, several queries
    if not view.models:
        return _is_answered_unseen(view, sources, answer)
    # What was searched before a grader, outside of it, does not make it a turn.
    retrieved = _looks_up(view, sources)
    if view.is_step(answer) and not retrieved:
        return False
    said = str(view.outputs) if isinstance(view.outputs, (int, float)) else answer
    return is_turn(steps.calls, answer=said, retrieved=retrieved)


def _looks_up(view: TurnPart, sources: Sources) -> bool:
    """Whether the run itself looked something up."""
    return sources.looked_up and bool(view.retrievals or view.tools)


def _is_answered_unseen(view: TurnPart, sources: Sources, answer: str) -> bool:
    """Whether a model may have been called past the framework; a formatter only repeats the documents."""
    is_new = any(one.text not in answer for one in sources.documents)
    return bool(answer) and (is_new or view.is_answered(answer))


def _is_only_asked(view: TurnPart, sources: Sources, answer: str) -> bool:
    """Whether a run replied to a conversation, or to a question without anything that could be graded."""
    is_one = not sources.documents and sum(is_telling(text) for _, text in strings_in(view.inputs)) < 2
    return view.is_replied_to or (is_one and view.is_answered(answer))


def _answer(view: TurnPart, steps: Steps, options: Options) -> str:
    if view.error is not None:
        return ""
    calls = without_queries(steps.calls, [one.given for one in steps.retrievals])
    answer = answer_of(view.outputs, view.inputs, options.answer_key, calls=calls)
    if not answer and view.turn.given is not None and steps.calls:
        answer = steps.calls[-1].reply
    view.said = answer = edited(answer, steps.said, view.outputs, calls)
    return named_in_form(answer) if options.answer_key is None else answer


def _origin(
    view: TurnPart, steps: Steps, sources: Sources, answer: str, question: str, options: Options
) -> Origin:
    given = view.turn.given or {}
    answer = str(given.get("answer") or view.said or answer)
    calls = steps.calls
    if options.context_key is not None:
        return Origin(
            contexts=_told(view, options.context_key),
            retrieved=(),
            contexts_source="told",
            calls=calls_behind(calls, answer),
            notes=(),
        )
    if not answer and calls and not calls[-1].replies:
        steps = replace(
            steps, steps=[step for step in steps.steps if step.kind != "model" or step is steps.models[-1]]
        )
    elif (
        len(calls) == 1
        and not is_intermediate_output(calls[0].replies)
        and (said := calls[0].reply.strip().rstrip("."))
        and said in answer
    ):
        answer = calls[0].reply  # the only one, however short it is
    return decide(steps, sources, answer=answer, question=str(given.get("question") or question))


def _told(view: TurnPart, key: Any) -> tuple[Context, ...]:
    """What stands where the application says that its passages stand."""
    value = pick(view.outputs, key)
    if value is None and isinstance(key, str):
        value = pick(view.inputs, key)
    listed = value if isinstance(value, (list, tuple)) else [value]
    return tuple(contexts_of(listed) or documents_in(value))


def _reference(view: TurnPart, options: Options) -> str | None:
    key = options.reference_key
    if key is None:
        return None
    found = pick(view.inputs, key)
    if found is None and isinstance(key, str):
        found = (view.turn.metadata or {}).get(key)
    return text_in(found) or None


def _error(error: BaseException | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {text_of(error)}"
