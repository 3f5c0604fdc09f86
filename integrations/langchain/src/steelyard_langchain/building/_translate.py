"""What callbacks told of a run tree, as the steps of a turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from steelyard.record import Context
from steelyard.recording.building import Step, Turn, is_telling, reaches, shown_instead
from steelyard.recording.provenance import plain
from steelyard.recording.reading import contexts_of, messages_in, strings_in
from steelyard_langchain._turn import Earlier, Model, Passed, Retrieval, Tool
from steelyard_langchain._turn import Turn as OpenTurn
from steelyard_langchain.building._calls import call_of, searched
from steelyard_langchain.building._strays import held_by, stray_look_ups, stray_replies
from steelyard_langchain.building._view import TurnPart


def turn_of(view: TurnPart) -> Turn:
    """The turn, or the part of it that is below one chain."""
    steps: list[Step] = []
    for before in view.history:
        steps += _steps(view, before, [*before.retrievals.values(), *before.tools.values()], before.results)
    steps += _steps(view, view.turn, [*view.retrievals, *view.tools, *view.all_models], view.results)
    nearby, earlier = [look_ups(view, one) for one in view.nearby], view.earlier_calls
    if view.chain is None and view.turn.strays and not _looks_up(view, nearby):
        steps += _searched_elsewhere(view)
        if not view.turn.loose:
            replied = list(stray_replies(view.turn, steps))
            view.replied_elsewhere = bool(replied)
            earlier = [*earlier, *replied]
        steps.sort(key=lambda step: step.at)
    resumed = [*(getattr(before.inputs, "resume", None) for before in view.history), view.resumed_with]
    return Turn(
        given=view.inputs,
        returned=view.outputs,
        steps=steps,
        before=nearby,
        earlier=earlier,
        said=[text for _, text in strings_in(resumed)],
    )


def _looks_up(view: TurnPart, nearby: Iterable[Sequence[Step]]) -> bool:
    """Whether the turn, or what was found before it and it used, is where its passages come from."""
    contexts = (one for steps in nearby for step in steps for one in step.contexts or ())
    return bool(view.retrievals or view.tools) or any(reaches(one.text, view.prompts) for one in contexts)


def _searched_elsewhere(view: TurnPart) -> list[Step]:
    """What threads that knew nothing of the turn looked up, as far as its prompts hold it."""
    found = stray_look_ups(view.turn)
    return [step for one in found for step in held_by(view.prompts, look_ups(view, one))]


def look_ups(view: TurnPart, earlier: Earlier) -> list[Step]:
    """What a run before the turn looked up, as steps."""
    return _steps(view, earlier, [*earlier.retrievals.values(), *earlier.tools.values()], ())


def _steps(
    view: TurnPart,
    turn: OpenTurn | Earlier,
    runs: Iterable[Retrieval | Model | Tool],
    passed: Sequence[Passed],
) -> list[Step]:
    made = {run.key: _step(view, run) for run in runs}
    for key, step in made.items():
        step.parent = _nearest(turn, key, made)
    steps = [*made.values(), *(_passed(*one) for one in passed)]
    return sorted(steps, key=lambda step: step.at)


def _nearest(turn: OpenTurn | Earlier, key: int, made: dict[int, Step]) -> Step | None:
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
    returned = _returned(run)
    return Step(
        kind="tool",
        name=run.name or "",
        given=run.inputs,
        returned=returned,
        at=run.started,
        hands_over=_hands_over(run.output, returned),
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


def _returned(tool: Any) -> Any:
    """What a tool returned; of a graph's command, the message to the model that it adds."""
    update = getattr(tool.output, "update", None)
    messages = update.get("messages") if isinstance(update, dict) else None
    told = (one for one in messages or () if messages_in(one) and messages_in(one)[0].role == "tool")
    return next(told, tool.output)


def _hands_over(command: Any, told: Any) -> bool:
    """Whether a graph's command goes on to another agent, and tells a model no more than that."""
    goto = getattr(command, "goto", None)
    targets = goto if isinstance(goto, (list, tuple)) else (goto,)
    names = [name for one in targets if isinstance(name := getattr(one, "node", one), str)]
    text = " ".join(message.text for message in messages_in(told))
    for name in names:
        text = text.replace(name, " ")
    return bool(names) and not is_telling(text)


def _passed(at: float, value: Any, is_variables: bool) -> Step:
    """What a step returned, or what a template was filled with."""
    if is_variables:
        return Step(kind="prompt", given=value, at=at)
    return Step(kind="chain", returned=value, at=at, ended=at)
