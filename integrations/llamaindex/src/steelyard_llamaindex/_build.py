"""The recorder's options, checked once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from steelyard.record import Context, Record, Timings, TraceRef, text_of, to_json_value
from steelyard.recording import (
    OnRecord,
    TurnDraft,
    check_function,
    check_names,
    check_positive,
    session_of,
    unique,
    with_given,
)
from steelyard.recording.building import (
    Asked,
    Sources,
    Step,
    Steps,
    asked_of,
    asks_of_reply,
    decide,
    is_conversation,
    is_status,
    is_telling,
    named_in_form,
    said_last,
    shows_nothing,
    sources_of,
    told,
)
from steelyard.recording.explaining import origins_of
from steelyard.recording.provenance import (
    Origin,
    form_of,
    guessed_question,
    is_intermediate_output,
    is_turn,
    json_strings,
    notes_on_predecessors,
    plain,
    sentence,
)
from steelyard.recording.reading import asked_in, is_question, strings_in
from steelyard_llamaindex._extract import NO_ANSWER, answer_of, reply_of, result_of
from steelyard_llamaindex._translate import turn_of
from steelyard_llamaindex._turn import Turn, unused


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How turns become Records, and how long they may take.

    Raises:
        ConfigurationError: If an option cannot mean what was given.
    """

    tool_contexts: Collection[str] = ()
    """Names of an agent's tools whose text is evidence, though it comes from no retriever."""
    on_record: OnRecord | None = None
    """Called with every Record in the Monitor's thread; may return a changed one."""
    ttl: float = 3600.0
    """Seconds after which a turn that never ended is given up."""
    max_open: int = 10_000
    """OpenTurns under way before the oldest is given up."""

    def __post_init__(self) -> None:
        check_names("tool_contexts", self.tool_contexts)
        check_function("on_record", self.on_record)
        check_positive("ttl", self.ttl)
        check_positive("max_open", self.max_open)


_SETTINGS = ("reference", "reference_contexts", "tags")
_OWN_TAGS = "llamaindex."
LOOSE = "no run holds the retrieval and this call together; `with record(question):` around both does"
"""Note of a turn that was put together out of calls in one task."""

ELSEWHERE = "the prompt holds replies of runs in other threads, whose passages are not known; see record()"
"""Note of a turn that was made of what engines or models answered in a pool."""

FORM = "answer: a form that a model filled in; code may show a part of it, or other words; set turn.answer"
"""Note of an answer whose form names none of its parts as the answer."""

RETOLD = "answer: such a run's reply was sent on or asked for again; the user may see more; set turn.answer"
"""Note of a run of a class whose reply was a step to an answer or a part of it, this time or another."""

LAST_REPLY = "answer: the result tells none; the last reply of a model is taken; set turn.answer in record()"
"""Note of a workflow that wrote its answer to its events."""


class LlamaIndexDraft(TurnDraft):
    """A finished turn of LlamaIndex whose Record is still to be built."""

    __slots__ = ("_options", "turn")

    def __init__(self, turn: Turn, options: Options) -> None:
        super().__init__(on_record=options.on_record)
        self.turn = turn
        self._options = options

    @property
    def id(self) -> str:
        """The id that the Record will have."""
        return self.turn.id

    @property
    def trace(self) -> TraceRef | None:
        """Where the turn lives in the host's traces."""
        return self.turn.span.trace(self.turn.id)

    @property
    def size(self) -> int:
        """Roughly how many bytes it keeps alive; measuring nodes and chats would cost more than it tells."""
        steps = (step.result for step in self.turn.steps)
        nodes = sum(len(result) for result in steps if isinstance(result, list))
        prompts = sum(len(call.asked) if isinstance(call.asked, str) else 4000 for call in self.turn.calls)
        return 2000 + 2000 * nodes + 2 * prompts + 10 * len(self.turn.pieces)

    def read(self) -> Record | None:
        """The Record; None for a workflow that retrieved nothing, which is not a RAG turn."""
        turn = self.turn
        given = turn.given or {}
        if turn.is_step:
            return None
        steps = turn_of(turn)
        own = str(given.get("answer") or named_in_form(self._answer(steps)))
        last = "" if "answer" in given else _last_reply(turn, steps, own)
        steps.answer = answer = last or own
        sources = sources_of(steps, tool_contexts=self._options.tool_contexts)
        asked = asked_of(steps, sources)
        question = str(given.get("question") or asked.question)
        doubtful = "question" not in given and "question_guessed" in asked.notes
        origin = decide(steps, sources, answer=answer, question=question, doubtful=doubtful)
        if answer == NO_ANSWER and turn.failure is None and origin.contexts_source != "in_prompt":
            # Whatever was retrieved was left out on the way: too unlike the question, say.
            origin = replace(origin, contexts=(), retrieved=unique(sources.found), notes=())
        if not _is_turn(turn, steps, sources, origin, asked, answer):
            return None
        _consume(turn, steps, origin)
        turn.learnt.answers[plain(answer)] = None
        notes = _notes(turn, steps, sources, origin, asked)
        notes += [LAST_REPLY] * bool(last) + [RETOLD] * (turn.root.name in turn.learnt.retold)
        if "contexts" in given:
            given = {**given, "contexts": told(given["contexts"], origin, steps, question=question)}
        return with_given(self._record(steps, sources, origin, asked, notes), given)

    def _record(
        self, steps: Steps, sources: Sources, origin: Origin, asked: Asked, notes: list[str]
    ) -> Record:
        turn, answer = self.turn, steps.answer
        status, error = turn.status, turn.error
        if status == "ok" and turn.failure is not None and answer.strip() == NO_ANSWER:
            # Engines swallow some errors of their models and answer with a placeholder.
            status, error, answer = "error", turn.failure, ""
        elif status == "ok":
            notes += _doubts(turn, answer)
        tags = _Tags(turn.tags)
        return Record(
            id=turn.id,
            question=asked.question,
            standalone_question=asked.standalone,
            contexts=origin.contexts,
            contexts_source=origin.contexts_source,
            retrieved=origin.retrieved,
            stages=sources.look_ups.stages,
            answer=answer,
            reference=tags.reference,
            reference_contexts=tags.reference_contexts,
            status=status,
            error=error,
            trace=self.trace,
            session=session_of(turn.tags) or turn.session,
            timings=self._timings(steps),
            tags=tags.tags,
            metadata=tags.metadata,
            origins=origins_of(steps, asked.question, origin, answer),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _answer(self, steps: Steps) -> str:
        turn = self.turn
        if turn.streaming:
            return text_of("".join(turn.pieces)).strip()
        result = turn.root.result
        answer = reply_of(result)[0] if turn.root.kind == "llm" else answer_of(result)
        is_unnamed = isinstance(steps.returned, Mapping) and answer[:1] == "{"
        if is_unnamed or isinstance(steps.returned, (list, tuple)):
            # No name says which part of it was the answer; messages are looked at if no other text is it.
            texts = [text for _, text in strings_in(steps.returned)], list(json_strings(answer))[1:]
            answer = next(filter(None, (said_last(one, steps.calls) for one in texts)), answer)
        return answer or (answer_of(turn.said) if turn.root.kind == "manual" else "")

    def _timings(self, steps: Steps) -> Timings:
        turn = self.turn
        seconds = [step.ended - step.at for step in steps.retrievals if step.ended is not None]
        return Timings(
            started_at=turn.started,
            total=turn.root.seconds,
            retrieval=sum(seconds) if seconds else None,
            generation=turn.generation or None,
        )


def _last_reply(turn: Turn, steps: Steps, own: str) -> str:
    """What a model said last in a workflow that returned nothing, or how it ended.

    Not if it is a verdict, a question or a tool's call.
    """
    is_silent = result_of(turn.root.result) in (None, "") or (own and is_status(own, steps.calls))
    if turn.root.kind != "workflow" or turn.streaming or not is_silent:
        return ""
    said = _replied(turn, steps)
    call = max(said, key=lambda step: step.ended or 0.0).call if said else None
    if call is None or call.arguments or is_intermediate_output(call.replies) or is_question(call.reply):
        return ""
    return call.reply.strip()


def _replied(turn: Turn, steps: Steps) -> list[Step]:
    """The calls that replied; those that streamed if any did: that was for the user, the rest for code."""
    streamed = {call.began for call in turn.calls if call.step.kind == "llm" and call.step.result is None}
    said = [step for step in steps.models if step.call is not None and step.ended is not None]
    return [step for step in said if step.at in streamed] or said


def _is_turn(turn: Turn, steps: Steps, sources: Sources, origin: Origin, asked: Asked, answer: str) -> bool:
    """Whether anything was answered out of what was looked up, given or shown."""
    if turn.given is not None:
        return True
    if turn.root.kind == "synthesis" and not (turn.loose or turn.taken):
        # What has no question mark is mostly an instruction for an index: a summary of each document.
        return is_question(asked.question)
    if turn.is_alone:
        return _is_turn_alone(turn, steps, sources, origin, asked, answer)
    if turn.root.kind != "workflow" or answer == NO_ANSWER or steps.elsewhere:
        return True
    return _is_turn_of_workflow(turn, steps, sources, origin, asked)


def _is_turn_of_workflow(turn: Turn, steps: Steps, sources: Sources, origin: Origin, asked: Asked) -> bool:
    """Whether a workflow looked something up, or did so before and now answered without."""
    if sources.looked_up or sources.documents or (origin.contexts and asked.question):
        turn.learnt.searching.add(turn.root.name)
        return True
    is_asked = bool(steps.answer and asked.question) and "question_guessed" not in asked.notes
    return _found_nothing(steps) or (is_asked and turn.root.name in turn.learnt.searching)


def _is_turn_alone(
    turn: Turn, steps: Steps, sources: Sources, origin: Origin, asked: Asked, answer: str
) -> bool:
    """Whether a call that nothing holds answered out of what was retrieved before it, or of its prompt."""
    if asks_of_reply(asked, steps):
        return False
    if turn.loose or turn.taken:
        return answer == NO_ANSWER or _goes_on(steps, origin, answer)
    is_searched = origin.contexts or sources.looked_up or _goes_on_with(turn, steps)
    is_searched = is_searched or shows_nothing(steps, origin.calls.made, question=asked.question)
    return bool(is_searched and asked.question and answer) and is_turn(steps.calls, answer=answer)


def _goes_on_with(turn: Turn, steps: Steps) -> bool:
    """Whether a call by itself answers what the user says after the answer of a turn."""
    messages = [one for step in steps.models for one in step.messages]
    is_asked = bool(messages) and messages[-1].role == "user" and not is_question(steps.answer)
    said = (plain(one.text) for one in messages if one.role == "assistant")
    return is_asked and not form_of(steps.answer) and any(text in turn.learnt.answers for text in said)


def _found_nothing(steps: Steps) -> bool:
    """Whether a step of a workflow looked something up by itself, and nothing came of it, or it says so."""
    passed = [step.returned for step in steps.steps] + [steps.returned]
    fields = [value for value in passed if isinstance(value, Mapping)]
    return any(value.get(name) == [] for value in fields for name in ("nodes", "source_nodes", "sources"))


def _goes_on(steps: Steps, origin: Origin, answer: str) -> bool:
    """Whether a model answered from what had been looked up before.

    It was shown that, or asked the same: else it may be chance that one came after the other.
    """
    used = origin.contexts_source == "in_prompt" and any(one.seen for one in origin.contexts)
    return (used or _is_asked(steps)) and is_turn(steps.calls, answer=answer)


def _consume(turn: Turn, steps: Steps, origin: Origin) -> None:
    """Let go of the retrievals before the turn that it used, and of those before them."""
    texts = {one.text for one in origin.contexts}
    shown = [any(one.text in texts for step in run for one in step.contexts or ()) for run in steps.before]
    last = max((at for at, used in enumerate(shown) if used), default=-1)
    # Before what other threads retrieved may stand what another turn's answer waits for.
    used = list(compress(turn.taken, shown)) or unused(turn)[: last + 1]
    for step in used:
        step.used_by = turn.id
    for own in turn.predecessors[-1:]:
        own.found = own.found or tuple(used)


def _is_asked(steps: Steps) -> bool:
    prompts = [plain(text) for call in steps.calls for text in call.prompts]
    queries = [step.given for run in steps.before for step in run if isinstance(step.given, str)]
    return any(plain(query) in prompt for query in queries for prompt in prompts)


def _notes(turn: Turn, steps: Steps, sources: Sources, origin: Origin, asked: Asked) -> list[str]:
    """What is lost or doubtful; nothing about an answer that there is not."""
    notes = [LOOSE] if turn.is_alone or turn.root.kind == "synthesis" else []
    notes += [ELSEWHERE] * steps.elsewhere
    if sources.look_ups.silent:
        notes.append(f"{sources.look_ups.silent} retrieved nodes have no text")
    if "question" not in (turn.given or ()):
        notes += map(sentence, asked.notes)
        notes += [sentence("question_whole_prompt")] * _holds_a_search(turn, asked.question)
    if steps.answer and turn.status != "error" and "contexts" not in (turn.given or ()):
        notes += origin.notes
    if turn.is_alone:
        return notes
    return notes + notes_on_predecessors(
        asked.question,
        steps.calls,
        steps.earlier,
        found=[
            *filter(None, [asked.standalone]),
            *(one.text for one in (*origin.contexts, *origin.retrieved)),
        ],
        in_conversation=turn.root.kind == "chat" or is_conversation(steps, steps.models),
    )


def _holds_a_search(turn: Turn, question: str) -> bool:
    """Whether what a run was asked holds what was searched for just before it, so that it may be a prompt."""
    asked = plain(question)
    queries = {plain(asked_in(span.asked)) for span in unused(turn) if not turn.is_alone} - {asked}
    # A query of few words stands somewhere by chance, but not where a prompt names its question.
    return any(is_telling(one) and one in asked for one in queries) or (
        bool(queries) and plain(guessed_question(question)) in queries
    )


def _doubts(turn: Turn, answer: str) -> list[str]:
    """What is doubtful about a run that ended well."""
    failed = [] if turn.failure is None else [f"a step failed and the run went on: {turn.failure}"]
    if answer or failed:
        return failed + [FORM] * bool(form_of(answer))
    if turn.streaming:
        return ["answer: the stream said nothing"]
    kind = type(result_of(turn.root.result)).__name__
    return [f"answer: not found in a result of type {kind}; set turn.answer in record()"]


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
        self.metadata: dict[str, Any] = to_json_value(
            {
                name: value
                for name, value in given.items()
                if name not in _SETTINGS and not str(name).startswith(_OWN_TAGS)
            }
        )
