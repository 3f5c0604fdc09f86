"""What threads that knew nothing of a turn ran for it: told by what its prompts hold.

No passage comes into a record in this way that does not stand in the turn's own prompts, or that it did not
look up itself, whatever other turns ran at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from steelyard.record import Context
from steelyard.recording.building import Step, is_telling
from steelyard.recording.provenance import ModelCall, plain
from steelyard.recording.reading import strings_in
from steelyard_langchain._turn import Earlier, Turn
from steelyard_langchain.building._calls import call_of


def stray_replies(turn: Turn, steps: Sequence[Step]) -> Iterator[ModelCall]:
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


def stray_look_ups(turn: Turn) -> Iterator[Earlier]:
    """What was looked up during a turn, but not in its task or thread, and no answer has used yet."""
    for stray in turn.strays:
        earlier = stray.earlier
        if stray.model or earlier is None or not earlier.ready or earlier.used_by not in (None, turn.key):
            continue
        if stray.started >= turn.started and earlier not in turn.nearby:
            yield earlier


def held_by(prompts: Sequence[str], steps: Sequence[Step]) -> list[Step]:
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
