"""A Record as the answer to "what did you take for what?"."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from steelyard.record import Record
from steelyard.recording._manual import TOLD
from steelyard.recording.explaining._options import option_for

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
