"""What callbacks told of a run tree, as the steps of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.recording.building import Step, Turn
from steelyard.recording.reading import contexts_of, messages_in
from steelyard_langchain._turn import Chain, Earlier, Model, Retrieval, Tool
from steelyard_langchain._turn import Turn as OpenTurn
from steelyard_langchain.building._calls import call_of, searched
from steelyard_langchain.building._view import View


def turn_of(view: View) -> Turn:
    """The turn, or the part of it that is below one chain."""
    steps: list[Step] = []
    for before in view.history:
        steps += _steps(before, before.retrievals.values(), before.tools.values(), (), before.results)
    steps += _steps(view.turn, view.retrievals, view.tools, view.all_models, view.results)
    return Turn(
        given=view.inputs,
        returned=view.outputs,
        steps=steps,
        before=[look_ups(earlier) for earlier in view.nearby],
        earlier=view.earlier_calls,
    )


def look_ups(earlier: Earlier) -> list[Step]:
    """What a run before the turn looked up, as steps."""
    return _steps(earlier, earlier.retrievals.values(), earlier.tools.values(), (), ())


def _steps(
    turn: OpenTurn | Earlier,
    retrievals: Any,
    tools: Any,
    models: Any,
    passed: Sequence[tuple[float, Any, bool]],
) -> list[Step]:
    made: dict[int, Step] = {}
    for run in (*retrievals, *tools, *models):
        made[run.key] = _step(run)
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


def _step(run: Retrieval | Model | Tool | Chain) -> Step:
    if isinstance(run, Retrieval):
        documents = run.documents or ()
        contexts = tuple(contexts_of(documents))
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
    return Step(kind="tool", name=run.name or "", given=run.inputs, returned=_returned(run), at=run.started)


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


def _passed(at: float, value: Any, is_variables: bool) -> Step:
    """What a step returned, or what a template was filled with."""
    if is_variables:
        return Step(kind="prompt", given=value, at=at)
    return Step(kind="chain", returned=value, at=at, ended=at)
