"""Which step of a turn told its question, its passages and its answer, in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from steelyard.record import Context, ContextsSource, text_of
from steelyard.recording.building import Step, StepKind, Turn
from steelyard.recording.reading import messages_in, strings_in

_WORDS: Final[dict[StepKind, str]] = {
    "retrieval": "retriever",
    "rerank": "step",
    "tool": "tool",
    "chain": "step",
    "prompt": "template",
    "model": "model",
}
_FIRST: Final[tuple[tuple[StepKind, ...], ...]] = (("retrieval", "tool"), ("rerank", "chain"))
"""What brought a document is told before what passed it on."""
_NAME: Final = 100


def origins_of(
    turn: Turn, *, question: str, contexts: Sequence[Context], source: ContextsSource, answer: str
) -> dict[str, tuple[str, ...]]:
    """From where each was taken: `retriever faiss`, `tool search`, `input, question`; empty if nobody knows.

    Args:
        turn: The turn.
        question: What was taken for the question.
        contexts: What was taken for the passages.
        source: How these were found.
        answer: What was taken for the answer.
    """
    found = {
        "question": (_question(turn, question),) if question else (),
        "contexts": tuple(_passages(turn, [one.text.strip() for one in contexts], source)),
        "answer": (_answer(turn, answer.strip()),) if answer.strip() else (),
    }
    return {name: places for name, places in found.items() if any(places)}


def _question(turn: Turn, question: str) -> str:
    if place := _place("input", turn.given, question):
        return place
    if any(question in one.text for one in messages_in(turn.given)):
        return "input, messages"
    if place := _place("result", turn.returned, question):
        return place
    return next((f"prompt of {_named(step)}" for step in turn.models if _is_sent(step, question)), "")


def _is_sent(step: Step, text: str) -> bool:
    return step.call is not None and any(text in prompt for prompt in step.call.prompts)


def _answer(turn: Turn, answer: str) -> str:
    for step in reversed(turn.models):
        said = [reply.strip() for reply in (step.call.replies if step.call else ()) if reply.strip()]
        if any(reply in answer or answer in reply for reply in said):
            return f"reply of {_named(step)}"
    return _place("result", turn.returned, answer)


def _passages(turn: Turn, texts: Sequence[str], source: ContextsSource) -> Iterator[str]:
    if source == "guessed":
        yield from (_question(Turn(steps=turn.steps), text) for text in texts)
        return
    steps = [*turn.steps, *(step for run in turn.before for step in run)]
    brought: dict[str, str] = {}
    for kinds in _FIRST:
        for step in steps:
            if step.kind in kinds:
                for one in step.contexts or ():
                    brought.setdefault(one.text.strip(), _named(step))
    for text in texts:
        yield brought.get(text) or _returned(turn, steps, text)


def _returned(turn: Turn, steps: Iterable[Step], text: str) -> str:
    """The step that returned a passage within something else, or was filled in with it."""
    others = [step for step in steps if step.kind != "model"]
    place = next(filter(None, (_within(step, text) for step in others)), "")
    if place := place or _place("input", turn.given, text):
        return place
    if any(one.role == "tool" and text in one.text for step in turn.models for one in step.messages):
        return "tool, as a message tells it"
    # A tool's JSON has its passages in another form.
    tools = {_named(step) for step in others if step.kind == "tool"}
    return tools.pop() if len(tools) == 1 else ""


def _within(step: Step, text: str) -> str:
    value = step.given if step.kind == "prompt" else step.returned
    place = _place(_named(step), value, text)
    return place or (_named(step) if any(text in one.text for one in messages_in(value)) else "")


def _place(what: str, value: object, text: str) -> str:
    """The place of a text in a value, with the name it stands under; empty where it is not."""
    for name, found in strings_in(value):
        if text in found:
            return f"{what}, {name[:_NAME]}" if name else what
    return ""


def _named(step: Step) -> str:
    word = _WORDS[step.kind]
    name = text_of(step.name)[:_NAME]
    return f"{word} {name}" if name else f"a {word}"
