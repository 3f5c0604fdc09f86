"""What a turn's answer rests on, by the builder that all recorders share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from steelyard.record import Context
from steelyard.recording import unique
from steelyard.recording.building import Sources, decide, guess
from steelyard.recording.building import Turn as Steps
from steelyard.recording.provenance import ModelCall, Origin, names_passages
from steelyard_opentelemetry._documents import documents_in
from steelyard_opentelemetry._translate import ranked
from steelyard_opentelemetry._turn import EMPTY, Turn


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundPassages:
    """The passages of a turn, and how they are known."""

    steps: Steps
    """The turn as the shared builder sees it."""
    sources: Sources
    """What came into it."""
    origin: Origin
    """What of it the answer rests on."""

    @property
    def contexts(self) -> tuple[Context, ...]:
        """What the answer is judged by."""
        return self.origin.contexts

    @property
    def texts(self) -> list[str]:
        """Everything that came into it from outside of a model."""
        known = (*self.contexts, *self.sources.documents)
        return [*(one.text for one in known), *(one.text for one in self.sources.texts)]

    @property
    def is_guessed(self) -> bool:
        """Whether the passages were cut out of a prompt."""
        return self.origin.contexts_source == "guessed"

    @property
    def silent(self) -> int:
        """How many documents are told by id and score alone."""
        return self.sources.look_ups.silent


def evidence_of(turn: Turn) -> FoundPassages:
    """The passages of a turn, from whatever its spans told."""
    # Kept on the turn: several readers ask for it, and matching is what takes the time.
    if not isinstance(turn.evidence, FoundPassages):
        turn.evidence = _evidence(turn)
    return turn.evidence


def follow(turn: Turn, earlier: Sequence[ModelCall]) -> None:
    """Take in what models were sent and replied before a turn; what may come from there is judged again."""
    turn.earlier = earlier
    found = evidence_of(turn)
    sources = found.sources
    stale = _kept_in_state(turn, earlier) if len(sources.made) > 1 else ()
    sources.made = [one for one in sources.made if one.text not in stale]
    sources.texts = [one for one in sources.texts if one.text not in stale]
    documents = {one.text for one in sources.documents}
    if earlier and any(one.text not in documents for one in found.contexts):
        found.steps.earlier = earlier
        turn.evidence = _evidence(turn)


def _kept_in_state(turn: Turn, earlier: Sequence[ModelCall]) -> set[str]:
    """The documents of an earlier turn that steps were still given, and that none of this turn returned."""
    passing = [p.passing for _, p in turn.seen("chain") if len(p.passing) > 1] if earlier else []
    given, returned = ({d.text for p in passing for d in documents_in(p[at])} for at in (0, -1))
    shown = [text for call in earlier for text in call.prompts] if returned else []
    return {text for text in given - returned if any(text in one for one in shown)}


def _evidence(turn: Turn) -> FoundPassages:
    steps, sources = turn.steps, turn.sources
    if marked := turn.marked("documents"):
        told = Origin(
            contexts=ranked(marked), retrieved=(), contexts_source="told", calls=turn.behind, notes=()
        )
        return FoundPassages(steps=steps, sources=sources, origin=told)
    doubtful = "question_guessed" in turn.asked.notes
    origin = decide(steps, sources, answer=turn.answer, question=turn.question, doubtful=doubtful)
    if not origin.contexts:
        origin = _untold(turn, origin)
    if origin.retrieved and _has_cut_prompt(turn, origin):
        # What a prompt that was cut does not show may have stood in the rest of it.
        every = tuple(replace(one, seen=None) for one in origin.retrieved)
        origin = replace(origin, contexts=every, retrieved=(), contexts_source=sources.look_ups.source)
    has_failed = any(node.span.failed for node in turn.nodes)
    if turn.answer == EMPTY and origin.contexts_source != "in_prompt" and not has_failed:
        # Whatever was retrieved was left out on the way: too unlike the question, say.
        origin = replace(origin, contexts=(), retrieved=unique(sources.found), notes=())
    return FoundPassages(steps=steps, sources=sources, origin=origin)


def _untold(turn: Turn, origin: Origin) -> Origin:
    """The same with what spans tell of, although no prompt on them shows it."""
    steps, sources = turn.steps, turn.sources
    if origin.retrieved and not _shows_results(steps, origin):
        # The span tells what the model was asked first, without what its tools returned.
        return replace(origin, contexts=sources.documents, retrieved=())
    if not any(call.prompts for call in steps.calls):
        # The template's variables are told in place of the prompt.
        filled = [one.text for one in sources.texts if names_passages(one.name)]
        origin = replace(origin, contexts=ranked(Context(text=text) for text in filled))
    if turn.has_unread and not origin.contexts:
        return guess(origin, steps, question=turn.question)
    return origin


def _shows_results(steps: Steps, origin: Origin) -> bool:
    """Whether prompts tell what tools returned, so that what they do not hold was not shown."""
    if not steps.tools:
        return True
    return any(
        one.role == "tool" and one.text for at in origin.calls.all for one in steps.models[at].messages
    )


def _has_cut_prompt(turn: Turn, origin: Origin) -> bool:
    return turn.cut.length > 0 and any(
        turn.cut.ends(text) for at in origin.calls.all for text in turn.steps.calls[at].prompts
    )
