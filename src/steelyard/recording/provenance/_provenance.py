"""What a turn's answer is judged by, and what is known about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from steelyard.record import Context, ContextsSource
from steelyard.recording.provenance._calls import AnswerCalls, ModelCall, calls_behind
from steelyard.recording.provenance._evidence import (
    MOST_PASSAGES,
    MOST_PROMPT,
    UNDECIDED,
    PassageMatch,
)
from steelyard.recording.provenance._find import find_passages
from steelyard.recording.provenance._notes import Note, sentence
from steelyard.recording.provenance._words import plain, word_count

_WHOLE = 0.95  # what is above lacks a word or two to a template, and was not cut
_MOSTLY = 0.5
_TELLING = 4
"""Words that a reply or a passage must have to be told by them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where an answer came from: the context fields of a Record, and what is doubtful about them."""

    contexts: tuple[Context, ...]
    """What the answer is judged by: those in its prompt, in the order of the prompt, where that is known;
    else all candidates in their order."""
    retrieved: tuple[Context, ...]
    """All candidates in their order, where that is more than `contexts`; otherwise empty."""
    contexts_source: ContextsSource
    """`in_prompt` only where every context was found in a prompt that made the answer."""
    calls: AnswerCalls
    """The model calls that made the answer."""
    notes: tuple[str, ...]
    """What is lost or doubtful; each begins with a name of `NOTES`."""


def trace_provenance(
    candidates: Iterable[Context],
    calls: Sequence[ModelCall],
    *,
    answer: str,
    question: str = "",
    queries: Iterable[str] = (),
    source: ContextsSource = "retrieved",
) -> Origin:
    """Decide what an answer is judged by, from what was retrieved and what models were asked.

    Args:
        candidates: Everything that retrievers, tools and steps brought, in order.
        calls: All model calls of the turn.
        answer: What the user was shown.
        question: What was asked; words that a passage shares with it prove nothing.
        queries: What retrievers were asked; calls that wrote them did not make the answer.
        source: How the candidates came in, where the prompt does not decide it.

    Example:
        >>> docs = [Context(text="Rome has seven hills."), Context(text="Paris has one river.")]
        >>> call = ModelCall(prompts=("Context: ['Rome has seven hills.']",), reply="Seven.")
        >>> found = trace_provenance(docs, [call], answer="Seven.")
        >>> [(one.text, one.seen) for one in found.contexts], found.contexts_source
        ([('Rome has seven hills.', 1.0)], 'in_prompt')
    """
    unique: dict[str, Context] = {}
    for context in candidates:
        unique.setdefault(context.text, context)
    # A rewriter that changed nothing replied with the question, which stands in every prompt after it.
    found, asked = calls_behind(calls, answer, queries=(*queries, question)), plain(question)
    notes = [sentence(note) for note in found.notes]
    prompts = [text for at in found.all for text in calls[at].prompts if text]
    if not unique:
        return Origin(
            contexts=(),
            retrieved=(),
            contexts_source=source,
            calls=found,
            notes=(*notes, sentence("no_contexts")),
        )
    if not prompts:
        every = tuple(_seen(context, UNDECIDED, asked) for context in unique.values())
        return Origin(
            contexts=every,
            retrieved=(),
            contexts_source=source,
            calls=found,
            notes=(*notes, sentence("no_prompt_seen")),
        )
    unique = _not_replied(unique, calls, found)
    prompts = _without_cut(unique, calls, found) or prompts
    sightings = find_passages(list(unique), prompts, question=question)
    too_large = sum(map(len, unique)) > MOST_PASSAGES or sum(map(len, prompts)) > MOST_PROMPT
    every = tuple(_seen(one, seen, asked) for one, seen in zip(unique.values(), sightings, strict=True))
    return _decided(every, sightings, source, found, notes, too_large=too_large)


def _without_cut(candidates: Collection[str], calls: Sequence[ModelCall], found: AnswerCalls) -> list[str]:
    """The prompts of the calls behind an answer, without those that a candidate was copied out of.

    An extract takes the place of the passage that a model cut it out of.
    """
    kept = [at for at in found.all if at in found.made or calls[at].reply.strip() not in candidates]
    return [text for at in kept for text in calls[at].prompts if text]


def _not_replied(
    candidates: dict[str, Context], calls: Sequence[ModelCall], found: AnswerCalls
) -> dict[str, Context]:
    """The candidates without those that hold what a model replied on the way.

    An engine's answer that a retriever hands on as a node is not evidence; what that engine was shown is.
    What a model only copied, a sentence of a passage, is evidence still.
    """
    said = [
        reply.strip()
        for at in found.fed
        for reply in calls[at].replies
        if word_count(reply) >= _TELLING
        and calls[at].prompts  # of a call whose prompt was not seen, nobody knows what it copied
        and not any(reply.strip() in text for text in calls[at].prompts)
    ]
    kept = {text: one for text, one in candidates.items() if not _ends_in(text, said)}
    return kept or candidates


def _ends_in(text: str, said: Sequence[str]) -> bool:
    """Whether a text holds replies, and not only above the most of it: a query heads what was found by it."""
    end = max((at + len(reply) for reply in said if (at := text.rfind(reply)) >= 0), default=0)
    return end >= _MOSTLY * len(text)


def _decided(
    every: tuple[Context, ...],
    sightings: Sequence[PassageMatch],
    source: ContextsSource,
    calls: AnswerCalls,
    notes: list[str],
    *,
    too_large: bool,
) -> Origin:
    placed = [(s.position or 0, one) for one, s in zip(every, sightings, strict=True) if s.found]
    inside = tuple(one for _, one in sorted(placed, key=lambda pair: pair[0]))
    notes += _counted(inside, sightings)
    notes += [sentence("contexts_too_large")] if too_large else []
    if not inside:
        # What did not reach the prompt is not what the answer rests on; what is too short to be told may be.
        untold = tuple(one for one, sighting in zip(every, sightings, strict=True) if sighting.found is None)
        notes.append(sentence("contexts_not_in_prompt"))
        return Origin(
            contexts=untold,
            retrieved=every if len(untold) < len(every) else (),
            contexts_source=source,
            calls=calls,
            notes=tuple(notes),
        )
    return Origin(
        contexts=inside,
        retrieved=every if len(inside) < len(every) else (),
        contexts_source="in_prompt",
        calls=calls,
        notes=tuple(notes),
    )


def _counted(inside: Iterable[Context], sightings: Sequence[PassageMatch]) -> list[str]:
    counts: dict[Note, int] = {
        "contexts_partly_in_prompt": sum(one.seen is not None and one.seen < _WHOLE for one in inside),
        "contexts_undecided": sum(sighting.found is None for sighting in sightings),
    }
    return [sentence(note, count=count) for note, count in counts.items() if count]


def _seen(context: Context, sighting: PassageMatch, asked: str) -> Context:
    """The passage with the share of it that was there, and without a query that only repeats the question."""
    seen = None if sighting.found is None else (sighting.seen if sighting.found else 0.0)
    query = None if context.query and plain(context.query) == asked else context.query
    return replace(context, seen=seen, query=query)
