"""What callbacks told of a run tree, as the steps of a turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from steelyard.record import Context
from steelyard.recording.building import Step, Steps, is_telling, reaches, said_by_command, shown_instead
from steelyard.recording.provenance import ModelCall, plain
from steelyard.recording.reading import contexts_of, messages_in, strings_in
from steelyard_langchain._turn import Earlier, Model, Passed, Retrieval, Tool, Turn
from steelyard_langchain._view import TurnPart, call_of, reply_text, searched

_MOST_STRAYS = 32
"""Look-ups of other tasks and threads whose texts are looked for in the prompt of a call by itself."""


def _stray_replies(turn: Turn, steps: Sequence[Step]) -> Iterator[ModelCall]:
    """The model calls during a turn whose replies its later prompts hold: a model's words, and no passages.

    Without their prompts, which may be another user's.
    """
    if not (ended := _ended_since(turn)):
        return
    asked = [(step.at, plain(text)) for step in steps if step.call for text in step.call.prompts]
    for end, call in ended:
        if is_telling(call.reply) and _holds((text for at, text in asked if at >= end), call.reply):
            yield replace(call, prompts=())


def _ended_since(turn: Turn) -> list[tuple[float, ModelCall]]:
    models = (stray.model for stray in turn.strays if stray.started >= turn.started)
    return [(model.ended, call_of(model)) for model in models if model is not None and model.ended]


def _stray_look_ups(turn: Turn) -> Iterator[Earlier]:
    """What was looked up during a turn, but not in its task or thread, and no answer has used yet.

    For a model that was called by itself: what workers and tasks looked up before it.
    """
    for stray in turn.strays[-_MOST_STRAYS:] if turn.loose else turn.strays:
        earlier = stray.earlier
        if stray.model or earlier is None or not earlier.ready or earlier.used_by not in (None, turn.key):
            continue
        is_near = stray.is_elsewhere(turn) if turn.loose else stray.started >= turn.started
        if is_near and earlier not in turn.nearby:
            yield earlier


def _held_by(prompts: Sequence[str], steps: Sequence[Step]) -> list[Step]:
    """The look-ups, each with the texts of those passages alone that prompts hold.

    Without ids, scores and what was asked: where two turns hold the same text, they may be another user's.
    """
    found: list[Step] = []
    for step in steps:
        shown = tuple(Context(text=one.text) for one in step.contexts or () if _holds(prompts, one.text))
        if shown or any(is_telling(text) and _holds(prompts, text) for _, text in strings_in(step.returned)):
            found.append(replace(step, given=None, contexts=shown or None))
    return found


def _holds(prompts: Iterable[str], text: str) -> bool:
    form = plain(text)
    return any(form in prompt for prompt in prompts)


def turn_of(view: TurnPart) -> Steps:
    """The turn, or the part of it that is below one chain."""
    steps: list[Step] = []
    for before in view.history:
        steps += _steps(view, before, [*before.retrievals.values(), *before.tools.values()], before.results)
    steps += _steps(view, view.turn, [*view.retrievals, *view.tools, *view.all_models], view.results)
    nearby, replied = [look_ups(view, one) for one in view.nearby], list[ModelCall]()
    if view.chain is None and not _looks_up(view, nearby):
        steps += _answered_in_parts(view)
    if view.chain is None and view.turn.strays and not _looks_up(view, nearby):
        found = _searched_elsewhere(view)
        if view.turn.loose:
            nearby += [found] * bool(found)
        else:
            steps += found
            replied = list(_stray_replies(view.turn, steps))
        steps.sort(key=lambda step: step.at)
    resumed = [*(getattr(before.inputs, "resume", None) for before in view.history), view.resumed_with]
    return Steps(
        given=view.inputs,
        returned=view.outputs,
        steps=steps,
        before=nearby,
        earlier=[*view.earlier_calls, *replied],
        elsewhere=bool(replied),
        said=[text for _, text in strings_in(resumed)],
    )


def _answered_in_parts(view: TurnPart) -> list[Step]:
    """What earlier runs looked up and replied, if this one was shown what several of them replied.

    Each searched for the same question, which this one asks as well: of files, of chapters, of indexes.
    """
    runs = ((one.found, [model for model in one.asked if _is_told(model, view)]) for one in view.predecessors)
    parts = [(found, told) for found, told in runs if found and told]
    counts = Counter(query for found, _ in parts for query in _queries(found))
    asked = {query for query, count in counts.items() if count > 1 and _holds(view.prompts, query)}
    used = ((found, told) for found, told in parts if not asked.isdisjoint(_queries(found)))
    return [
        step for found, told in used for step in _steps(view, found, [*found.retrievals.values(), *told], ())
    ]


def _queries(found: Earlier) -> set[str]:
    return {query for run in found.retrievals.values() if (query := plain(str(run.query)))}


def _is_told(model: Model, view: TurnPart) -> bool:
    """Whether a prompt shows what a model replied before, as a text of its own."""
    text, ended = reply_text(model), model.ended
    return ended is not None and ended <= view.started and is_telling(text) and _holds(view.prompts, text)


def _looks_up(view: TurnPart, nearby: Iterable[Sequence[Step]]) -> bool:
    """Whether the turn, or what was found before it and it used, is where its passages come from."""
    contexts = (one for steps in nearby for step in steps for one in step.contexts or ())
    return bool(view.retrievals or view.tools) or any(reaches(one.text, view.prompts) for one in contexts)


def _searched_elsewhere(view: TurnPart) -> list[Step]:
    """What threads that knew nothing of the turn looked up, as far as its prompts hold it."""
    found = _stray_look_ups(view.turn)
    return [step for one in found for step in _held_by(view.prompts, look_ups(view, one))]


def look_ups(view: TurnPart, earlier: Earlier) -> list[Step]:
    """What a run before the turn looked up, as steps."""
    return _steps(view, earlier, [*earlier.retrievals.values(), *earlier.tools.values()], ())


def _steps(
    view: TurnPart,
    turn: Turn | Earlier,
    runs: Iterable[Retrieval | Model | Tool],
    passed: Sequence[Passed],
) -> list[Step]:
    made = {run.key: _step(view, run) for run in runs}
    for key, step in made.items():
        step.parent = _nearest(turn, key, made)
    steps = [*made.values(), *(_passed(*one) for one in passed)]
    return sorted(steps, key=lambda step: step.at)


def _nearest(turn: Turn | Earlier, key: int, made: dict[int, Step]) -> Step | None:
    parents = turn.parents
    for _ in range(1000):
        key = parents.get(key, -1)
        if key == -1:
            break
        if key in made:
            return made[key]
    return None


def _step(view: TurnPart, run: Retrieval | Model | Tool) -> Step:
    if isinstance(run, Retrieval):
        documents = run.documents or ()
        contexts = tuple(_as_shown(one, documents[one.rank or 0], view) for one in contexts_of(documents))
        return Step(
            kind="retrieval",
            name=run.name or "retriever",
            given=run.query,
            returned=run.documents,
            contexts=None if run.documents is None else contexts,
            silent=len(documents) - len(contexts),
            at=run.started,
            ended=run.ended,
        )
    if isinstance(run, Model):
        return Step(
            kind="model",
            name=_name_of(run.about),
            call=call_of(run),
            messages=(*_messages(run.prompt), *searched(run)),
            at=run.started,
            ended=run.ended,
            failed=run.failed,
        )
    returned, hands_over = said_by_command(run.output, run.inputs)
    return Step(
        kind="tool",
        name=run.name or "",
        given=run.inputs,
        returned=returned,
        at=run.started,
        hands_over=hands_over,
    )


def _as_shown(one: Context, document: Any, view: TurnPart) -> Context:
    def holds(text: str) -> bool:
        return any(plain(text) in prompt for prompt in view.prompts)

    text = shown_instead(one.text, getattr(document, "metadata", None), holds)
    return one if text == one.text else replace(one, text=text)


def _name_of(about: Any) -> str:
    """The class of a model, out of what LangChain writes of it."""
    path = about.get("id") if isinstance(about, dict) else None
    return str(path[-1]) if isinstance(path, list) and path else ""


def _messages(prompt: Any) -> Any:
    batches = list(prompt or ())
    return messages_in(list(batches[0])) if batches and isinstance(batches[0], (list, tuple)) else ()


def _passed(at: float, value: Any, is_variables: bool) -> Step:
    """What a step returned, or what a template was filled with."""
    if is_variables:
        return Step(kind="prompt", given=value, at=at)
    return Step(kind="chain", returned=value, at=at, ended=at)
