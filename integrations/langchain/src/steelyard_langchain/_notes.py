"""What a LangChain turn's Record lacks, or is not sure of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.record import Status, text_of
from steelyard.recording.building import Asked, Sources, is_conversation, is_one_of_several, is_telling
from steelyard.recording.building import Turn as Steps
from steelyard.recording.provenance import Origin, notes_on_predecessors, sentence
from steelyard.recording.reading import state_of, strings_in
from steelyard_langchain._extract import ANSWER_KEYS, replies_in, verdict_after, without_queries
from steelyard_langchain._options import Options
from steelyard_langchain._view import TurnPart, calls_of

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
        notes += _on_predecessors(view, steps, sources, asked.question)
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


def _on_predecessors(view: TurnPart, steps: Steps, sources: Sources, question: str) -> list[str]:
    return notes_on_predecessors(
        question,
        calls_of(view.models),
        view.earlier_calls,
        found=[context.text for context in sources.found],
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
