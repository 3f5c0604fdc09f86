"""A turn, or the part of it that is below one chain, as the Record is made of it, and what that lacks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from steelyard.record import Status, Timings, text_of, to_json_value
from steelyard.recording.building import Asked, Sources, Steps, is_conversation, is_one_of_several, is_telling
from steelyard.recording.provenance import ModelCall, Origin, notes_on_predecessors, plain, sentence
from steelyard.recording.reading import (
    ANSWERS,
    Message,
    asked_in,
    is_document,
    messages_in,
    searched_by_provider,
    state_of,
    strings_in,
)
from steelyard_langchain._extract import (
    ANSWER_KEYS,
    message_text,
    prompt_texts,
    replies_in,
    verdict_after,
    without_queries,
)
from steelyard_langchain._options import Options
from steelyard_langchain._turn import (
    STEP_TAGS,
    Chain,
    Earlier,
    Model,
    Passed,
    Predecessor,
    Turn,
    outermost,
    within,
)


def calls_of(models: Iterable[Model]) -> list[ModelCall]:
    """What each model was sent and what it said, as text, as tool calls, or as a filled-in form."""
    return [call_of(model) for model in models]


def said_before(run: Predecessor, started: float) -> Sequence[ModelCall]:
    """What an earlier run asked models last; nothing unless that had ended when the present one began."""
    if not all(model.ended is not None and model.ended < started for model in run.asked):
        return ()
    if run.read is None and run.asked:
        run.read = calls_of(run.asked)
    return run.read or ()


def call_of(model: Model) -> ModelCall:
    """What a model was sent and what it said."""
    return ModelCall(
        prompts=(*prompt_texts(model.prompt), *(one.text for one in searched(model))),
        reply=reply_text(model),
        arguments=tuple(_arguments(_reply(model))),
        started=model.started,
    )


def searched(model: Model) -> tuple[Message, ...]:
    """What the model's provider searched by itself and showed it."""
    reply = _reply(model)
    # Most replies are plain texts, which hold nothing else.
    extra = getattr(reply, "additional_kwargs", None) or {}
    if isinstance(getattr(reply, "content", None), str) and "tool_outputs" not in extra:
        return ()
    return searched_by_provider(reply)


def _reply(model: Model) -> Any:
    """The reply's message, or its text where the model has no messages; None while it runs."""
    generations: Any = getattr(model.reply, "generations", None) or ()
    for batch in generations:
        for generation in batch:
            message = getattr(generation, "message", None)
            return message if message is not None else str(getattr(generation, "text", ""))
    return model.reply if hasattr(model.reply, "content") else None


def answer_message(response: Any) -> Any:
    """The message or text that a model run answered with; None where it only calls tools."""
    generations: Any = getattr(response, "generations", None) or ()
    for batch in generations:
        for generation in batch:
            message = getattr(generation, "message", None)
            if message is None:
                return getattr(generation, "text", "") or None
            return message if message.content and not getattr(message, "tool_calls", None) else None
    return None


def reply_text(model: Model) -> str:
    """What a model run replied, as text; empty while it runs, and for tool calls."""
    reply = _reply(model)
    return "" if reply is None else message_text(reply)


def _arguments(reply: Any) -> Iterator[str]:
    """The arguments of the tools that a reply calls, each as JSON."""
    for call in getattr(reply, "tool_calls", None) or ():
        yield json.dumps(to_json_value(call.get("args") or {}), ensure_ascii=False)
    extra = getattr(reply, "additional_kwargs", None) or {}
    function = extra.get("function_call")  # how models called functions before there were tools
    if isinstance(function, dict) and isinstance(function.get("arguments"), str):
        yield function["arguments"]


_NOISE_TAGS = (*STEP_TAGS, "langsmith:", "retry:attempt:")
_NOISE_METADATA = ("ls_", "lc_", "langgraph_", "checkpoint", "__", "LANGSMITH_", "LANGCHAIN_", "revision_id")


def id_of(turn: Turn, chain: Chain | None) -> str:
    """The id of the Record of a turn, or of one chain within it."""
    root = str(turn.root)
    return root if chain is None else f"{root}/{chain.key:032x}"


class TurnPart:
    """A turn, or the part of it that is below one chain."""

    def __init__(self, turn: Turn, chain: Chain | None) -> None:
        self.turn = turn
        self.chain = chain
        self.id = id_of(turn, chain)
        part: Turn | Chain = turn if chain is None else chain
        self.name = part.name
        # What a graph is resumed with answers the graph; what it brings besides is an input.
        is_command = type(part.inputs).__name__ == "Command"
        self.inputs = part.inputs.update if is_command else part.inputs
        self.resumed_with = part.inputs.resume if is_command else None
        self.outputs = part.outputs
        self.error = part.error
        self.started = part.started
        self.ended = part.ended
        # What is around a chain within the turn is not the chain's.
        self.status: Status = "error" if self.error else "ok"
        self.history: list[Turn] = []
        self.results: list[Passed] = []
        self.nearby: tuple[Earlier, ...] = ()
        self.predecessors: tuple[Predecessor, ...] = ()
        self.is_last_reply = False
        """Whether the answer is only what a model said last, since the run returned none."""
        self.said = ""
        """What the run returned for its answer, of which a form may name only a part so."""
        self.is_whole_form = False
        """Whether the answer is a form, of which any field may be what the user was shown."""
        if chain is None:
            self.status = turn.status
            self.history = turn.history
            self.results = [*turn.results, *turn.texts]
            self.nearby = turn.found_before
            self.predecessors = turn.predecessors
        self.retrievals = [run for run in turn.retrievals.values() if self._holds(run.key)]
        self.tools = [run for run in turn.tools.values() if self._holds(run.key)]
        # Who only agrees to what a model wrote, or changes it, resumes a run that asks no model.
        asked = next((one for one in (turn, *reversed(self.history)) if one.models), turn)
        self.all_models = [run for run in asked.models.values() if self._holds(run.key)]
        self.models = [run for run in self.all_models if outermost(asked, run.key)]

    @cached_property
    def earlier_calls(self) -> list[ModelCall]:
        """What earlier runs of the same task or thread asked a model last."""
        return [call for one in self.predecessors for call in said_before(one, self.started)]

    @cached_property
    def prompts(self) -> list[str]:
        """What its models were sent, as `plain` writes it."""
        return [plain(text) for model in self.all_models for text in prompt_texts(model.prompt)]

    @property
    def is_replied_to(self) -> bool:
        """Whether it was given a conversation that a user spoke last in, and returned it with a reply."""
        given, returned = messages_in(self.inputs), messages_in(self.outputs)
        is_longer = len(returned) > len(given) > 0
        return is_longer and given[-1].role == "user" and returned[-1].role == "assistant"

    @property
    def has_thread(self) -> bool:
        """Whether it belongs to a thread, so that it can go on."""
        return "thread_id" in {**(self.turn.metadata or {}), **(self.turn.configurable or {})}

    def is_answered(self, answer: str) -> bool:
        """Whether it was given a question under a usual name, and returned an answer under one."""
        given, returned = state_of(self.inputs), state_of(self.outputs)
        is_named = returned is not None and any(returned.get(name) == answer for name in ANSWERS)
        return given is not None and is_named and bool(asked_in(given))

    def is_step(self, answer: str) -> bool:
        """Whether it is a step of something else, if it looked nothing up, by its input and output.

        A document instead of a question is being indexed: summarised, or described by questions that it
        answers.
        """
        if is_document(self.inputs):
            return True
        outputs = self.outputs
        listed = isinstance(outputs, list) and bool(outputs) and all(isinstance(one, str) for one in outputs)
        return listed and not answer

    def _holds(self, key: int) -> bool:
        return self.chain is None or within(self.turn, key, self.chain.key)


def timings_of(view: TurnPart) -> Timings:
    """When it began, and how long searching and answering took."""
    turn = view.turn
    retrieval = [r.ended - r.started for r in view.retrievals if r.ended and outermost(turn, r.key)]
    generation = [m.ended - m.started for m in view.models if m.ended]
    return Timings(
        started_at=turn.started_at + (view.started - turn.started),
        total=None if view.ended is None else view.ended - view.started,
        retrieval=sum(retrieval) if retrieval else None,
        generation=sum(generation) if generation else None,
    )


def tags_of(turn: Turn) -> tuple[str, ...]:
    """The user's own tags."""
    return tuple(text_of(tag) for tag in turn.tags or () if not str(tag).startswith(_NOISE_TAGS))


def metadata_of(turn: Turn, options: Options) -> dict[str, Any]:
    """The user's own metadata, what the options add, and feedback that has come in."""
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


_NO_MODEL = "no model run was seen in this turn"
_LAST_REPLY = "answer: the output tells none; the last reply of a model is taken; set answer_key"
_WHOLE_FORM = (
    "answer: all that a model filled in, since no field of it is named as an answer is; set answer_key"
)
_SEVERAL = "answer: the last of several texts that models wrote, under no usual name; set answer_key"
_FOUND_NOTHING = "what was looked up found nothing that reached the prompt"
_ELSEWHERE = (
    "the prompt holds replies of runs in other threads, whose passages are not known here; "
    "ContextThreadPoolExecutor of langchain_core.runnables.config, or record(), holds them together"
)
_SAY_WHICH = "if the prompt had any, say which: record() and turn.contexts"


def notes_of(
    view: TurnPart,
    steps: Steps,
    sources: Sources,
    origin: Origin,
    asked: Asked,
    answer: str,
    status: Status,
    options: Options,
) -> tuple[str, ...]:
    """What is lost or doubtful about a turn."""
    notes = [*_gaps(view, sources, origin, asked, options), *_lacks(view, asked.question, answer, status)]
    if status != "ok":
        return tuple(notes)
    calls = without_queries(steps.calls, [one.given for one in steps.retrievals])
    if is_one_of_several(answer, _unnamed(view, answer), calls):
        notes.append(_SEVERAL)
    if any(model.failed for model in view.turn.models.values()):
        notes.append("error on the way: a model run failed")
    doubts = _doubts(view, sources, origin, options) if view.models else [_NO_MODEL]
    unknown = sentence("answer_call_unknown")
    notes += [note for note in doubts if answer or note != unknown]
    if steps.elsewhere:
        notes.append(_ELSEWHERE)
    if not view.turn.loose:
        notes += _on_predecessors(view, steps, sources, asked)
    return tuple(dict.fromkeys(notes))


def _gaps(view: TurnPart, sources: Sources, origin: Origin, asked: Asked, options: Options) -> Iterator[str]:
    if asked.question and "question" not in (view.turn.given or ()):
        yield from map(sentence, asked.notes)
    if options.context_key is not None and not origin.contexts:
        yield f"contexts: nothing under context_key {options.context_key!r}"
    if silent := sources.look_ups.silent:
        yield f"contexts: {silent} documents without text"


def _lacks(view: TurnPart, question: str, answer: str, status: Status) -> Iterator[str]:
    """What the Record lacks, and the option or the argument that tells it."""
    given = view.turn.given
    if not question and "question" not in (given or ()):
        lack = f"not found in an input of type {_kind(view.inputs)}; set question_key"
        yield f"question: {lack if given is None else 'not given; pass question= to record()'}"
    if not answer and status == "ok" and "answer" not in (given or ()):
        lack = f"not found in an output of type {_kind(view.outputs)}; set answer_key"
        yield f"answer: {lack if given is None else 'not given; set answer on the block'}"
    if view.is_last_reply:
        yield _LAST_REPLY
    if answer and given is None:
        yield from _on_answer(view, answer)


def _on_answer(view: TurnPart, answer: str) -> Iterator[str]:
    """What stands beside the answer, or is a part of it, and could be taken for it."""
    outputs = view.outputs
    if view.is_whole_form and sum(is_telling(text) for _, text in strings_in(outputs)) > 1:
        yield _WHOLE_FORM
    if verdict_after(outputs, answer):
        yield "answer: the last reply is a verdict on this one; set answer_key if it is the answer"
    if (several := replies_in(outputs)) > 1:
        yield f"answer: the run returned {several}, and this is the last; ask one a run, or set nested='all'"


def _unnamed(view: TurnPart, answer: str) -> list[str]:
    """The texts of a state that were not there before, if none of its names tells that one is the answer."""
    state = state_of(view.outputs) or {}
    named = [one for name in ANSWER_KEYS if isinstance(one := state.get(name), str)]
    if "answer" in (view.turn.given or ()) or answer in named:
        return []
    given = set(_texts_of(view.inputs))
    return [one for one in state.values() if isinstance(one, str) and one.strip() not in given]


def _on_predecessors(view: TurnPart, steps: Steps, sources: Sources, asked: Asked) -> list[str]:
    if not (view.predecessors or view.turn.around):
        return []
    return notes_on_predecessors(
        asked.question,
        steps.calls,
        view.earlier_calls,
        around=calls_of(view.turn.around),
        found=[asked.standalone or "", *(context.text for context in sources.found)],
        in_conversation=is_conversation(steps, steps.models),
        given=_texts_of(view.inputs),
    )


def _texts_of(inputs: Any) -> list[str]:
    fields = inputs.values() if isinstance(inputs, Mapping) else ()
    return [one.strip() for one in fields if isinstance(one, str)]


def _doubts(view: TurnPart, sources: Sources, origin: Origin, options: Options) -> list[str]:
    """What is doubtful about the contexts."""
    if "contexts" in (view.turn.given or ()) or options.context_key is not None:
        return []
    empty = sentence("no_contexts")
    doubts = [note for note in origin.notes if note != empty]
    if not origin.contexts:
        doubts.append(f"{empty}; {_FOUND_NOTHING if sources.looked_up else _SAY_WHICH}")
    return doubts


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{type(value).__name__} with keys {', '.join(sorted(map(text_of, value)))[:200]}"
    return type(value).__name__
