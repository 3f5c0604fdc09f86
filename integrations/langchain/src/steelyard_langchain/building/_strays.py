"""Searches and model calls in threads that knew nothing of the turn: its own by what its prompts hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from steelyard.recording.building import Step, is_telling
from steelyard.recording.provenance import plain
from steelyard.recording.reading import strings_in
from steelyard_langchain._turn import Earlier, Turn
from steelyard_langchain.building._calls import call_of

_BEFORE = 60.0
"""Seconds before a turn in which something may have been looked up for it."""


def stray_models(turn: Turn, prompts: list[str]) -> list[Turn]:
    """The model calls during a turn whose replies its prompts hold.

    Args:
        turn: The turn.
        prompts: What its models were sent; what these calls were sent is added to it.
    """
    found: list[Turn] = []
    for stray in reversed(turn.strays):
        model = stray.models.get(stray.key)
        if model is None or stray is turn or stray.started < turn.started:
            continue
        call = call_of(model)
        reply = plain(call.reply)
        if is_telling(reply) and any(reply in prompt for prompt in prompts):
            found.append(stray)
            prompts += map(plain, call.prompts)  # what it was shown may be another one's reply
    return found


def stray_look_ups(turn: Turn) -> Iterator[Earlier]:
    """What was looked up outside of the turn's own task or thread, and no answer has used yet.

    If its own has a look-up, only what ran during the turn.
    """
    has_own = bool(turn.retrievals or turn.tools or turn.found_before)
    since = turn.started - (0.0 if has_own else _BEFORE)
    for stray in turn.strays:
        earlier = stray.earlier
        if earlier is None or earlier in turn.nearby or stray.started < since:
            continue
        if earlier.ready and earlier.used_by in (None, turn.key):
            yield earlier


def held_by(prompts: Sequence[str], steps: Sequence[Step]) -> list[Step]:
    """The look-ups, each with those of its passages alone that prompts hold.

    Without what was asked, which may be another user's words for the same passage.
    """
    found: list[Step] = []
    for step in steps:
        shown = tuple(one for one in step.contexts or () if _holds(prompts, one.text))
        if shown or any(is_telling(text) and _holds(prompts, text) for _, text in strings_in(step.returned)):
            found.append(replace(step, given=None, contexts=shown or None))
    return found


def _holds(prompts: Sequence[str], text: str) -> bool:
    form = plain(text)
    return any(form in prompt for prompt in prompts)
