"""What an answer is judged by: what is known to have been in its prompt, or a guess that says so."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from steelyard.record import Context
from steelyard.recording._unique import unique
from steelyard.recording.building._sources import Sources, Text, is_telling, parts_of
from steelyard.recording.building._steps import Turn
from steelyard.recording.provenance import (
    ModelCall,
    Provenance,
    find_passages,
    guessed_passages,
    is_history,
    leaves,
    names_passages,
    plain,
    sentence,
    trace_provenance,
)
from steelyard.recording.reading import earlier_messages, passages_of

_SLOT = re.compile(r"\{[A-Za-z_]\w{0,40}\}")
_MOSTLY = 0.5
_WHOLLY = 0.9
_MUCH = 12
_MORE = "contexts: text beside the retrieved passages came from a place that was not seen; see turn.contexts"


def decide(turn: Turn, sources: Sources, *, answer: str, question: str) -> Provenance:
    """Which passages the answer rests on.

    Knowledge ends the search: a guess is made only if nothing was looked up, given or made.

    Args:
        turn: The turn.
        sources: What came into it.
        answer: What the user was shown.
        question: What was asked.
    """
    asked = plain(question)

    def traced(candidates: Iterable[Context]) -> Provenance:
        return trace_provenance(
            # A query that says the same as the question tells nothing more.
            (
                replace(one, query=None) if one.query and plain(one.query) == asked else one
                for one in candidates
            ),
            turn.calls,
            answer=answer,
            question=question,
            queries=sources.queries,
            source=sources.source,
        )

    origin = traced(sources.documents)
    texts, notes = _shown_texts(turn, sources, origin, question)
    if texts:
        origin = traced((*sources.documents, *texts))
    if origin.contexts_source == "in_prompt":
        return replace(_without_copies(origin, sources, texts), notes=(*origin.notes, *notes))
    prompts = any(call.prompts for call in turn.calls)
    if sources.reranked and not prompts:
        every = unique(sources.found)
        return replace(
            traced(sources.reranked), retrieved=every if len(every) > len(sources.reranked) else ()
        )
    if brought := sources.found or sources.reranked or sources.made or (() if prompts else sources.kept):
        return traced(brought)
    nothing = traced(())
    return nothing if sources.looked_up else guess(nothing, turn, question=question)


def told(
    contexts: Sequence[Context], origin: Provenance, turn: Turn, *, question: str
) -> tuple[Context, ...]:
    """The passages that the application named, each with the share of it that the prompt held."""
    prompts = [text for at in origin.calls.all for text in turn.calls[at].prompts if text]
    if not prompts:
        return tuple(contexts)
    sightings = find_passages([one.text for one in contexts], prompts, question=question)
    return tuple(
        replace(one, seen=None if seen.found is None else seen.seen if seen.found else 0.0)
        for one, seen in zip(contexts, sightings, strict=True)
    )


def _queried(one: Context, asked: str) -> Context:
    """The passage without its query if that only repeats the question."""
    return replace(one, query=None) if one.query and plain(one.query) == asked else one


def guess(origin: Provenance, turn: Turn, *, question: str) -> Provenance:
    """The same with passages cut out of the answer's own prompt, marked as guessed; itself if it has none.

    They carry neither ids nor scores, and are not scored unless that is asked for.
    """
    prompts = dict.fromkeys(text for at in origin.calls.made for text in turn.calls[at].prompts)
    cut = [one for prompt in prompts for one in guessed_passages(prompt, question)]
    answer = turn.answer.strip()
    texts = dict.fromkeys(one.text for text in cut for one in passages_of(text) if one.text != answer)
    if not texts:
        return origin
    contexts = tuple(Context(text=text, rank=rank) for rank, text in enumerate(texts))
    notes = tuple(note for note in origin.notes if not note.startswith("no_contexts"))
    return replace(
        origin, contexts=contexts, contexts_source="guessed", notes=(*notes, sentence("contexts_guessed"))
    )


def _without_copies(origin: Provenance, sources: Sources, texts: Sequence[Context]) -> Provenance:
    """What a step made and the prompt does not hold was not retrieved: a copy, a draft, a part."""
    shown = {one.text for one in origin.contexts}
    used = (run for run in sources.before if not shown.isdisjoint(one.text for one in run))
    changed = {one.text for one in sources.reranked} if sources.found else set[str]()
    looked_up = (shown - changed) | {one.text for one in chain(sources.found, *used)}
    retrieved = tuple(one for one in origin.retrieved if one.text in looked_up)
    same = [one.text for one in retrieved] == [one.text for one in origin.contexts]
    return replace(origin, retrieved=() if same or not origin.retrieved else retrieved)


def _shown_texts(
    turn: Turn, sources: Sources, origin: Provenance, question: str
) -> tuple[list[Context], list[str]]:
    """The other texts that stand in the answer's prompt and that no model wrote; and what is doubtful."""
    prompts = [text for at in origin.calls.all for text in turn.calls[at].prompts if text]
    if not prompts or not sources.texts:
        return [], []
    known = [plain(one.text) for one in sources.documents]
    history = [plain(text) for text in earlier_messages(turn.given)]
    asked = plain(question)
    queries = {plain(query) for query in sources.queries}
    whole = [plain(text) for text in prompts]
    able, notes = [], list[str]()
    for one in sources.texts:
        text = plain(one.text)
        is_said = text in asked or text in queries or any(text in said for said in history)
        if is_said or (asked and _is_prompt(text, asked, whole)) or is_history(one.text):
            continue
        if any(other in text or text in other for other in known):
            notes += [_MORE] if _has_more(text, known) and any(text in prompt for prompt in whole) else []
            continue
        able.append(one)
    shown = _not_written(turn, _without_known(_in_prompt(able, prompts, question), sources))
    chosen = _chosen(shown, has_documents=bool(origin.contexts))
    passages = [replace(part, seen=None) for one in _smallest(chosen) for part in parts_of(one.text)]
    return passages, list(dict.fromkeys(notes))


def _in_prompt(texts: Sequence[Text], prompts: Sequence[str], question: str) -> list[Text]:
    sightings = find_passages([one.text for one in texts], prompts, question=question) if texts else ()
    pairs = zip(texts, sightings, strict=True)
    shown = (one for one, seen in pairs if seen.found and seen.seen >= _MOSTLY)
    return [one for one in shown if not _is_template(one.text, prompts)]


def _without_known(texts: Sequence[Text], sources: Sources) -> list[Text]:
    """The texts that were not made of known passages, however those are written in them."""
    known = [one.text for one in sources.documents]
    if not known:
        return list(texts)
    return [one for one in texts if not any(seen.found for seen in find_passages(known, [one.text]))]


def _is_template(text: str, prompts: Sequence[str]) -> bool:
    """Whether a text has slots that were filled in the prompt, so that it is the template around the rest."""
    slots = _SLOT.findall(text)
    return bool(slots) and not any(all(slot in prompt for slot in slots) for prompt in prompts)


def _is_prompt(text: str, asked: str, prompts: Sequence[str]) -> bool:
    """Whether a text is a prompt, or a part of one with the question in it.

    A passage may repeat the question; the prompt then asks it once more beside the passage.
    """
    if any(prompt in text for prompt in prompts if prompt):
        return True
    if asked not in text:
        return False
    return not any(text in prompt and asked in prompt.replace(text, " ", 1) for prompt in prompts)


def _has_more(text: str, known: Sequence[str]) -> bool:
    """Whether a text that holds known passages holds much else besides."""
    rest = text
    for one in sorted(known, key=len, reverse=True):
        rest = rest.replace(one, "\0") if one else rest
    return "\0" in rest and max(len(piece.split()) for piece in rest.split("\0")) >= _MUCH


def _not_written(turn: Turn, texts: Sequence[Text]) -> list[Text]:
    """The texts that no model wrote before they were first seen, alone or in parts.

    What a model only copied out of its own prompt is evidence still, and so is what an answer quotes.
    """
    unseen = (s for s in turn.models if s.call and s.call.prompts and not s.call.replies and not s.failed)
    # After a call whose reply nobody saw it cannot be known that no model wrote a text.
    since = min((step.ended for step in unseen if step.ended is not None), default=math.inf)
    known = (one for one in texts if one.is_given or one.at < since)
    return [one for one in known if not _is_written(one, list(_calls_before(turn, one)))]


def _calls_before(turn: Turn, one: Text) -> Iterator[ModelCall]:
    """The calls that had replied when a text was first seen: of earlier runs, and of the turn itself."""
    yield from turn.earlier
    for step in turn.models:
        if step.call is not None and step.ended is not None and step.ended <= one.at:
            yield step.call


def _is_written(one: Text, calls: Sequence[ModelCall]) -> bool:
    text, shown, said = plain(one.text), list[str](), list[str]()
    for call in calls:
        # What is shown to the calls after this one may be its own reply.
        shown += call.prompts
        said += (part for reply in call.replies for part in leaves(reply) if is_telling(part))
        parts = "\n".join(said)
        theirs = any(seen.seen >= _MOSTLY for seen in find_passages([one.text], [*said, parts]))
        theirs = theirs or sum(len(part) for part in set(said) if plain(part) in text) >= len(text) * _MOSTLY
        if theirs and not any(seen.seen >= _WHOLLY for seen in find_passages([one.text], shown)):
            return True
    return False


def _chosen(texts: Sequence[Text], *, has_documents: bool) -> list[Text]:
    """Those that count: what was made on the way, and what the root was given if nothing else was.

    Of several that the root was given, those under a name for passages, if there are any.
    """
    made = [one for one in texts if not one.is_given]
    given = [] if has_documents or made else [one for one in texts if one.is_given]
    named = [one for one in given if names_passages(one.name)]
    return made or named or given


def _smallest(texts: Sequence[Text]) -> list[Text]:
    """The texts without those that others are part of: a list's joined form says nothing more."""
    forms = [(one, plain(one.text)) for one in texts]
    return [one for one, text in forms if not any(other in text for _, other in forms if other != text)]
