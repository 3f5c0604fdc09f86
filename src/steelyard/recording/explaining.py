"""What was taken for question, passages and answer of a turn: from where, how it is known, what settles it.

Recorders note on each Record which step told what (`origins_of`); the command line and the view show it
(`explain`), with the one option for each doubt (`OPTIONS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from steelyard.record import ContextsSource, Record, text_of
from steelyard.recording._draft import TOLD
from steelyard.recording.building import Step, StepKind, Steps
from steelyard.recording.provenance import Origin
from steelyard.recording.reading import messages_in, strings_in

_QUESTION: Final = {
    "langchain": "question_key=, the key of the input that holds it (or a function of the input)",
    "llamaindex": "`with record(question):` around the call",
    "opentelemetry": "`steelyard.question` on the turn's outermost span",
    "": "question= of the Record",
}
_CONTEXTS: Final = {
    "langchain": "context_key=, the key of the output that holds them; or turn.contexts in a `record` block",
    "llamaindex": "turn.contexts in a `record` block",
    "opentelemetry": "`steelyard.contexts` on a span of the turn",
    "": "contexts= of the Record",
}
_ANSWER: Final = {
    "langchain": "answer_key=, the key of the output that holds it (or a function of the output)",
    "llamaindex": "turn.answer in a `record` block",
    "opentelemetry": "`steelyard.answer` on the turn's outermost span",
    "": "answer= of the Record",
}
_TOGETHER: Final = {
    "langchain": "`with record(monitor, question=...):` around the calls of the turn",
    "llamaindex": "`with record(question):` around the calls of the turn",
    "opentelemetry": "one span around the turn, or the same `steelyard.turn` on its spans",
    "": "one Record for the turn",
}
_NOTHING: Final = {"": "nothing, if that is meant"}
_SEEN: Final = {
    "langchain": "pass the callbacks on to the model, and call it inside the turn",
    "opentelemetry": "let the model client's instrumentor record content",
    "": "call the model through the framework, inside the turn",
}
_LOOK_UP: Final = {
    name: f"if nothing was looked up, nothing; else {text}" for name, text in _CONTEXTS.items()
}

OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "answer_call_unknown": _ANSWER,
    "answer_call_assumed": _SEEN,
    "no_prompt_seen": _SEEN,
    "no model run was seen": _SEEN,
    "contexts_not_in_prompt": _CONTEXTS,
    "contexts_partly_in_prompt": _NOTHING,
    "contexts_undecided": _NOTHING,
    "contexts_too_large": _CONTEXTS,
    "contexts_guessed": _CONTEXTS,
    "no_contexts": _LOOK_UP,
    "contexts: nothing under context_key": {"": "the right context_key="},
    "question_guessed": _QUESTION,
    "question_unknown": _QUESTION,
    "question_whole_prompt": _QUESTION,
    "question_rewritten_only": _TOGETHER,
    "question:": _QUESTION,
    "answer: the run returned": {"": "nested='all', or one question a run"},
    "answer:": _ANSWER,
    "no span tells what the user was given": _ANSWER,
    "no run holds": _TOGETHER,
    "this run was shown what a model replied": _TOGETHER,
    "tool_results": {
        "langchain": "tool_contexts=, the names of the tools whose results are evidence, if not all are",
        "llamaindex": "tool_contexts=, the names of the tools whose results are evidence, if not all are",
        "": _CONTEXTS["opentelemetry"],
    },
}
"""By how a note begins, for each framework (`TraceRef.framework`); under the empty name for all others."""


def option_for(note: str, framework: str | None) -> str:
    """What settles a doubt; empty of a note that says it itself, or that nothing settles."""
    found = next((options for begins, options in OPTIONS.items() if note.startswith(begins)), None)
    return "" if found is None else found.get(framework or "", found.get("", ""))


Kind = Literal["known", "told", "guessed", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One thing that was taken."""

    text: str = field(repr=False)
    """The text; empty if there is none."""
    kind: Kind
    """How it is known; `unknown` if nothing was found."""
    origin: str
    """Which step it came from; empty if nothing says."""
    seen: float | None = None
    """Of a passage, the share of it that stood in the prompt; None if that is not known."""

    @property
    def how(self) -> str:
        """How it is known and from where: `known, from retriever faiss, 80 % of it in the prompt`."""
        place = f", from {self.origin}" if self.origin else ""
        share = "" if self.seen is None else f", {round(100 * self.seen)} % of it in the prompt"
        return f"{self.kind}{place}{share}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """A note, and what settles it."""

    note: str
    """What is lost or doubtful."""
    option: str
    """The one option that settles it; empty if none does, or the note says it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """What was taken for what in one turn."""

    question: Part
    """The question."""
    passages: tuple[Part, ...]
    """The passages to judge by."""
    answer: Part
    """The answer."""
    doubts: tuple[Doubt, ...]
    """What is doubtful, each with the option that settles it."""


def explain(record: Record) -> Explained:
    """What a Record holds, from where, how it is known and what is doubtful about it.

    Example:
        >>> found = explain(Record(question="Why?", answer="So.", notes=("question_guessed: ...",)))
        >>> found.question.kind, found.answer.kind, found.doubts[0].option
        ('guessed', 'known', 'question= of the Record')
    """
    names = {note.partition(":")[0].partition(" (")[0] for note in record.notes}
    kind: Kind = record.evidence or "unknown"
    places = record.origins.get("contexts", ())
    notes = [*record.notes]
    tools = {place for place in places if place.startswith("tool ")}
    if tools and kind == "known":
        notes.append(f"tool_results: what {', '.join(sorted(tools))} returned counts as evidence")
    framework = record.trace.framework if record.trace else None
    return Explained(
        question=_part(record, "question", record.question, is_guessed="question_guessed" in names),
        passages=tuple(
            Part(
                text=one.text,
                kind=kind,
                origin=places[at] if at < len(places) else "",
                seen=one.seen,
            )
            for at, one in enumerate(record.contexts)
        ),
        answer=_part(record, "answer", record.answer),
        doubts=tuple(Doubt(note=note, option=option_for(note, framework)) for note in notes),
    )


def _part(record: Record, name: str, text: str, *, is_guessed: bool = False) -> Part:
    (origin,) = record.origins.get(name, ("",))[:1] or ("",)
    kind: Kind = "guessed" if is_guessed else "told" if origin == TOLD else "known"
    return Part(text=text, kind=kind if text else "unknown", origin=origin)


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


def origins_of(turn: Steps, question: str, origin: Origin, answer: str) -> dict[str, tuple[str, ...]]:
    """From where each was taken: `retriever faiss`, `tool search`, `input, question`; empty if unknown."""
    texts = [one.text.strip() for one in origin.contexts]
    found = {
        "question": (_question(turn, question),) if question else (),
        "contexts": tuple(_passages(turn, texts, origin.contexts_source)),
        "answer": (_answer(turn, answer.strip()),) if answer.strip() else (),
    }
    return {name: places for name, places in found.items() if any(places)}


def _question(turn: Steps, question: str) -> str:
    if place := _place("input", turn.given, question):
        return place
    if any(question in one.text for one in messages_in(turn.given)):
        return "input, messages"
    if place := _place("result", turn.returned, question):
        return place
    return next((f"prompt of {_named(step)}" for step in turn.models if _is_sent(step, question)), "")


def _is_sent(step: Step, text: str) -> bool:
    return step.call is not None and any(text in prompt for prompt in step.call.prompts)


def _answer(turn: Steps, answer: str) -> str:
    for step in reversed(turn.models):
        said = [reply.strip() for reply in (step.call.replies if step.call else ()) if reply.strip()]
        if any(reply in answer or answer in reply for reply in said):
            return f"reply of {_named(step)}"
    return _place("result", turn.returned, answer)


def _passages(turn: Steps, texts: Sequence[str], source: ContextsSource) -> Iterator[str]:
    if source == "guessed":
        yield from (_question(Steps(steps=turn.steps), text) for text in texts)
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


def _returned(turn: Steps, steps: Iterable[Step], text: str) -> str:
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
