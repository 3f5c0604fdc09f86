"""Whether a model wrote a text, alone or in parts, rather than copied it out of its prompt."""

from __future__ import annotations

from collections.abc import Iterable

from steelyard.recording.building._parts import is_telling
from steelyard.recording.provenance import ModelCall, find_passages, json_strings, plain, plain_line

MOSTLY = 0.5
"""From this share on a text counts as being in another one."""
WHOLLY = 0.9
"""From this share on it counts as being there as it is."""


def is_written(text: str, calls: Iterable[ModelCall]) -> bool:
    """Whether a text is mostly made of what these calls replied; one that may have copied it does not count.

    That it resembles a reply is not enough: the entries of a catalogue resemble each other, too.
    """
    parts = [
        part
        for call in calls
        if not any(seen.seen >= WHOLLY for seen in find_passages([text], call.prompts))
        for reply in call.replies
        for part in json_strings(reply)
    ]
    form = plain(text)
    if any(plain(part) == form for part in parts):
        return True
    said = list(dict.fromkeys(part for part in parts if is_telling(part)))
    if any(seen.seen >= WHOLLY for seen in find_passages([text], [*said, "\n".join(said)])):
        return True
    return len(_rest(form, said)) <= len(form) * MOSTLY


def _rest(form: str, said: Iterable[str]) -> str:
    """What is left of a text without replies, and without lines of replies."""
    lines = {plain_line(line) for one in said for line in one.split("\n") if is_telling(line)}
    for part in sorted({*map(plain, said), *lines}, key=len, reverse=True):
        form = form.replace(part, "")
    return form
