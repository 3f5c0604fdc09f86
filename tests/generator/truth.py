"""What happened in a turn, taken from its script and from the prompt that made its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from generator.texts import place, squeezed
from generator.turns import Turn


class BrokenApplicationError(Exception):
    """The application did not do what its script says: a defect of the generator, never of a recorder."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """One turn as it happened."""

    id: str
    tenant: str
    session: str | None
    """The conversation, where the application says which it is."""
    question: str
    contexts: tuple[str, ...]
    """The passages in the prompt of the answer, in its order."""
    unshown: tuple[str, ...]
    """Those that were found and did not get there."""
    wholes: tuple[str, ...]
    """Whole texts that came from outside a model."""
    answer: str
    prompt: str


def truth_of(turn: Turn, shows: Callable[[Turn], Iterable[str]]) -> Truth:
    """The truth about a turn that has run.

    Raises:
        BrokenApplicationError: If no answer was made, or a passage that should be in its prompt is not.
    """
    if not turn.prompt:
        raise BrokenApplicationError(f"turn {turn.id} has no answer")
    prompt = "\n\n".join([*_relayed(turn), turn.prompt])
    places = {text: place(text, prompt) for text in turn.everything()}
    shown = sorted((text for text, at in places.items() if at >= 0), key=lambda text: places[text])
    if lost := [text for text in shows(turn) if text not in shown]:
        raise BrokenApplicationError(f"turn {turn.id}: {lost} not in {prompt!r}")
    return Truth(
        id=turn.id,
        tenant=turn.tenant,
        session=turn.thread if turn.threaded else None,
        question=turn.question,
        contexts=tuple(shown),
        unshown=tuple(text for text in turn.everything() if text not in shown),
        wholes=tuple(squeezed(whole) for whole in turn.wholes),
        answer=turn.answer,
        prompt=prompt,
    )


def _relayed(turn: Turn) -> list[str]:
    """What the calls before the answer were sent, in the order of their replies: some ran side by side."""
    places = (turn.prompt.find(f"{turn.draft} ({number})") for number in range(1, len(turn.relayed) + 1))
    return [text for _, text in sorted(zip(places, turn.relayed, strict=True), key=lambda pair: pair[0])]
