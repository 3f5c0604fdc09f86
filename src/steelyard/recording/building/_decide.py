"""What an answer is judged by: what is known to have been in its prompt, or a guess that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain

from steelyard.record import Context, ContextsSource, text_of
from steelyard.recording.building._beside import (
    CUT,
    MORE,
    MUCH,
    About,
    completed,
    cut_off,
    is_emptied,
    is_widened,
    numbered_once,
    prompts_with_room,
    surrounds,
)
from steelyard.recording.building._look_ups import LookUps
from steelyard.recording.building._printed import printed
from steelyard.recording.building._sent import asked_last
from steelyard.recording.building._sources import Sources
from steelyard.recording.building._steps import MOSTLY, Steps, has_nothing, is_telling, is_written, parts_of
from steelyard.recording.building._templates import TEMPLATES
from steelyard.recording.building._texts import shown_texts
from steelyard.recording.building._titles import origins_of
from steelyard.recording.provenance import (
    ModelCall,
    Origin,
    calls_behind,
    find_passages,
    guessed_passages,
    has_empty_place,
    is_history,
    is_intermediate_output,
    json_strings,
    may_find_nothing,
    parts_of_blocks,
    plain,
    sentence,
    trace_provenance,
    word_count,
)
from steelyard.recording.reading import earlier_messages, is_question, passages_of
from steelyard.recording.reading._passages import unique

RECEIPT = "contexts: a tool said few words, or fewer than it was told: maybe no evidence; see tool_contexts"
"""Note of a text of a few words by which a tool may only have said that it did something."""
LONE = (
    "contexts: few words are all that a look-up brought: it may say that it found nothing; see turn.contexts"
)
"""Note of the only text of a look-up, which may be a statement in a language of its own."""
STATED = "contexts: a few words stand where a look-up found nothing, and are not counted; see turn.contexts"
"""Note of a statement that nothing was found, in whatever language; it may tell something."""
_MOST_STATED = 12
"""Words of such a statement."""


def decide(turn: Steps, sources: Sources, *, answer: str, question: str, doubtful: bool = False) -> Origin:
    """Which passages the answer rests on.

    Knowledge ends the search: a guess is made only if nothing was looked up, given or made.

    Args:
        turn: The turn.
        sources: What came into it.
        answer: What the user was shown.
        question: What was asked.
        doubtful: Whether the question was cut out of a prompt; what the rest of a template was filled in
            with is then a guess too.
    """
    trace = partial(
        trace_provenance,
        calls=turn.calls,
        answer=answer,
        question=question,
        queries=sources.queries,
        source=sources.look_ups.source,
    )
    origin = trace(sources.documents)
    prompts = [text for at in origin.calls.all for text in turn.calls[at].prompts if text]
    records, words = printed(turn, sources)
    others = replace(sources, texts=[*sources.texts, *records])
    texts, notes = shown_texts(turn, others, prompts, question=question, has_documents=bool(origin.contexts))
    if _say_nothing(texts, turn, sources):
        texts, notes = [], [*notes, STATED]
    if texts:
        origin = trace((*sources.documents, *texts))
    if origin.contexts_source == "in_prompt":
        known = [one.text for one in origin.contexts]
        cut = cut_off(known, prompts)
        notes += [CUT] * bool(cut)
        notes += _doubts(known, origin, turn, sources, prompts, question)
        origin = replace(origin, notes=tuple(dict.fromkeys((*origin.notes, *notes))))
        origin = _without_statements(_without_copies(origin, sources), turn)
        once = numbered_once(origin.contexts, sources.found)
        return replace(origin, contexts=completed(once, cut))
    nothing = trace(())
    if is_emptied(turn):
        return replace(nothing, retrieved=tuple(unique(sources.found)))
    if (brought := _brought(turn, sources, trace)) is not None:
        return brought
    if sources.looked_up:
        return replace(nothing, notes=(*nothing.notes, *notes))
    texts, _ = shown_texts(
        turn, replace(sources, texts=words), prompts, question=question, has_documents=False
    )
    if texts and (shown := trace(texts)).contexts_source == "in_prompt":
        return shown
    return _from_template(nothing, turn, question=question, doubtful=doubtful)


def _doubts(
    known: Sequence[str],
    origin: Origin,
    turn: Steps,
    sources: Sources,
    prompts: Sequence[str],
    question: str,
) -> Iterator[str]:
    """Notes on passages that a prompt shows: that it shows more, or that a tool may have told nothing."""
    roomy = prompts_with_room(known, prompts)
    about = cache(partial(origins_of, known, sources, turn))
    if roomy and (
        is_widened(known, roomy, turn, question, about=about)
        or _is_filled_beside(origin, turn, question, about)
    ):
        yield MORE
    if any(text in sources.look_ups.receipts for text in known):
        yield RECEIPT
    elif _may_all_be_statement(sources.look_ups, known):
        yield LONE


def _say_nothing(shown: Sequence[Context], turn: Steps, sources: Sources) -> bool:
    """Whether all that a prompt shows after retrievers that told of nothing found may say just that."""
    found = [step.contexts for step in turn.steps if step.kind == "retrieval"]
    if not shown or not found or sources.documents or any(one is None or len(one) for one in found):
        return False
    return all(_may_be_statement(one.text.strip()) for one in shown)


def _may_be_statement(text: str) -> bool:
    return "\n" not in text and word_count(text) <= _MOST_STATED and not any(map(str.isdigit, text))


def _may_all_be_statement(made: LookUps, known: Sequence[str]) -> bool:
    """Whether all that retrievers brought is one bare text, without id and score, that may be such a one."""
    brought = [one for one in made.found if one.id is None and one.score is None]
    is_lone = made.source == "retrieved" and len(made.found) == len(brought) == 1
    return is_lone and known == [brought[0].text] and _may_be_statement(known[0])


def _without_statements(origin: Origin, turn: Steps) -> Origin:
    """The same without texts that no retriever brought and that may only say that nothing was found."""
    brought = {one.text for step in turn.retrievals for one in step.contexts or ()}
    left = [one for one in origin.contexts if one.text in brought or not _may_state_nothing(one.text)]
    if len(left) == len(origin.contexts):
        return origin
    return replace(origin, contexts=tuple(left), notes=(*origin.notes, STATED))


def _may_state_nothing(text: str) -> bool:
    whole, *parts = json_strings(text)
    return may_find_nothing(parts[0] if len(parts) == 1 else whole)


def _is_filled_beside(origin: Origin, turn: Steps, question: str, about: About) -> bool:
    """Whether the answer's template, once it is learnt, was filled in with more than the known passages."""
    filled = _filled_in(origin, turn, question=question)
    known, given = [one.text for one in origin.contexts], plain(text_of(turn.given))
    forms = [plain(text) for text in known]
    beside = (one.text for one in filled.contexts if plain(one.text) not in given) if filled else ()
    return any(
        surrounds(plain(text), forms, about=about)
        or (word_count(text) >= MUCH and not any(seen.found for seen in find_passages(known, [text])))
        for text in beside
    )


def _from_template(origin: Origin, turn: Steps, *, question: str, doubtful: bool) -> Origin:
    """The same with what the template was filled in with, if that is known; else with a guess."""
    filled, cut = _filled_in(origin, turn, question=question), guess(origin, turn, question=question)
    # Passages that come every time look like the template's own words.
    if filled is None or _says_more(cut, filled):
        return cut
    return _guessed(filled, [one.text for one in filled.contexts]) if doubtful else filled


def _says_more(cut: Origin, filled: Origin) -> bool:
    """Whether what seem to be passages has a line that a template was not filled in with this time."""
    known = plain("\n".join(one.text for one in filled.contexts))
    lines = (line for one in cut.contexts for line in one.text.split("\n") if is_telling(line))
    return any(plain(line) not in known for line in lines)


def _may_be_passages(
    turn: Steps, texts: Sequence[str], before: Sequence[ModelCall], *, question: str
) -> list[str]:
    """Of what a template was filled in with, what is neither the question, nor said before, nor a model's.

    Args:
        turn: The turn.
        texts: What the template was filled in with.
        before: The calls before the one that it was sent with, those of earlier turns among them.
        question: What was asked.
    """
    asked, history = plain(question), [plain(text) for text in earlier_messages(turn.given)]
    found: list[str] = []
    for text in texts:
        form = plain(text)
        is_asked = form in asked or asked in form or any(form in said for said in history)
        if is_telling(text) and not (is_asked or is_history(text) or is_written(text, before)):
            found.append(text)
    return list(dict.fromkeys(found))


def _brought(turn: Steps, sources: Sources, trace: Callable[[Iterable[Context]], Origin]) -> Origin | None:
    """What was looked up or made, if no prompt shows any of it; None if there is none."""
    is_prompt_seen = any(call.prompts for call in turn.calls)
    if sources.reranked and not is_prompt_seen:
        every = unique(sources.found)
        more = every if len(every) > len(sources.reranked) else ()
        return replace(trace(sources.reranked), retrieved=more)
    brought = sources.found or sources.reranked or sources.made or ([] if is_prompt_seen else sources.kept)
    return trace(brought) if brought else None


def _filled_in(origin: Origin, turn: Steps, *, question: str) -> Origin | None:
    """The same with what the answer's template was filled in with; None if that is not known."""
    slots: list[str] | None = None
    for prompt in asked_last(turn, origin.calls.made):
        found = TEMPLATES.filled_in(prompt, question=question)
        slots = slots if found is None else [*(slots or ()), *found]
    if slots is None:
        return None
    before = [*turn.earlier, *turn.calls[: max(origin.calls.made)]]
    texts = _may_be_passages(turn, slots, before, question=question)
    parts = [part.text for text in texts for part in parts_of(text)]
    # Passages that never change look like the template's own words.
    return _with_passages(origin, parts, "in_prompt", seen=1.0) if parts else None


def only_searches(turn: Steps, sources: Sources, answer: str) -> bool:
    """Whether a run looked something up and returned just that, so that another one answers from it."""
    if turn.returned is None or not turn.retrievals or turn.tools:
        return False
    if _is_query(answer.strip(), turn):
        return True
    texts = [one.text for one in sources.found]
    if not answer:
        # What stands beside documents may be an answer that cannot be read.
        is_list = isinstance(turn.returned, list)
        return is_list or not _is_shown(texts, turn)
    if not texts or _is_replied(answer, turn) or _is_shown(texts, turn):
        return False
    return any(one.seen >= MOSTLY for one in find_passages([answer], texts))


def _is_query(answer: str, turn: Steps) -> bool:
    """Whether an answer is only what a model wrote to be searched for then."""
    said = [step.at for step in turn.models if step.call and answer == step.call.reply.strip()]
    asked = [step.at for step in turn.retrievals if answer == text_of(step.given).strip()]
    return bool(said and asked) and max(said) < max(asked)


def _is_replied(answer: str, turn: Steps) -> bool:
    """Whether models said the answer: mostly one did, letter for letter."""
    replies = [reply.strip() for call in turn.calls for reply in call.replies]
    return answer.strip() in replies or calls_behind(turn.calls, answer).known


def _is_shown(texts: list[str], turn: Steps) -> bool:
    """Whether a model was shown them to answer, even if a later step changed the words of its answer."""
    calls = (call for call in turn.calls if not is_intermediate_output(call.replies))
    prompts = [text for call in calls for text in call.prompts if text]
    return any(one.found for one in find_passages(texts, prompts))


def told(contexts: Sequence[Context], origin: Origin, turn: Steps, *, question: str) -> tuple[Context, ...]:
    """The passages that the application named, each with the share of it that the prompt held."""
    prompts = [text for at in origin.calls.all for text in turn.calls[at].prompts if text]
    if not prompts:
        return tuple(contexts)
    sightings = find_passages([one.text for one in contexts], prompts, question=question)
    return tuple(
        replace(one, seen=None if seen.found is None else seen.seen if seen.found else 0.0)
        for one, seen in zip(contexts, sightings, strict=True)
    )


def shows_nothing(turn: Steps, made: Sequence[int], *, question: str) -> bool:
    """Whether what the answer's calls were sent has a place for passages with nothing in it.

    What a message says beside the question goes before what others say about such places.
    """
    sent = (turn.calls[at].prompts for at in made)
    every = (one for texts in sent for one in dict.fromkeys((*texts, "\n\n".join(texts))))
    return any(has_empty_place(one, question) for one in every)


def guess(origin: Origin, turn: Steps, *, question: str) -> Origin:
    """The same with passages cut out of the answer's own prompt, marked as guessed; itself if it has none.

    They carry neither ids nor scores, and are not scored unless that is asked for.
    """
    if shows_nothing(turn, origin.calls.made, question=question):
        return origin
    prompts = asked_last(turn, origin.calls.made)
    question = _as_shown(question, origin, turn, prompts)
    # What stands beside the question, and only if there is nothing, what stands in another message, or in
    # what a call was sent whose statement the answer's prompt holds: an answer to a part of the question.
    beside = [prompt for prompt in prompts if question and question in prompt]
    cut = _cut(beside, question) or _cut(prompts, question) or _cut(_of_parts(origin, turn), question)
    texts = dict.fromkeys(_unsaid(cut, origin, turn))
    return _guessed(origin, texts) if texts else origin


def _as_shown(question: str, origin: Origin, turn: Steps, prompts: Sequence[str]) -> str:
    """The question, or what a model asks in its place in a prompt that does not hold it."""
    before = turn.calls[: min(origin.calls.made, default=0)]
    told = (
        question,
        *(reply.strip() for call in reversed(before) for reply in call.replies if is_question(reply)),
    )
    return next((one for one in told if any(one in prompt for prompt in prompts)), question)


def _of_parts(origin: Origin, turn: Steps) -> Iterator[str]:
    for call in (turn.calls[at] for at in origin.calls.fed):
        if any(map(is_telling, call.replies)) and not is_intermediate_output(call.replies):
            yield from call.prompts


def _unsaid(cut: Iterable[str], origin: Origin, turn: Steps) -> Iterator[str]:
    """The passages in what was cut out of a prompt: not the answer, nor a reply, nor the form of one."""
    said = [plain(reply) for call in turn.earlier for reply in call.replies]
    before = turn.calls[: min(origin.calls.made, default=0)]
    for text in (one.text for block in cut for one in passages_of(block)):
        is_said = text == turn.answer.strip() or any(plain(text) in reply for reply in said)
        if not (
            is_said or has_nothing(text, text) or is_written(text, before) or _is_form(text, origin, turn)
        ):
            yield text


def _labelled(text: str) -> dict[str, str]:
    """What stands behind the label of each line that has one."""
    parts = (line.partition(": ") for line in text.split("\n"))
    return {label.strip(): said.strip() for label, mark, said in parts if mark}


def _is_form(text: str, origin: Origin, turn: Steps) -> bool:
    """Whether a reply has all the labels of a text, and other words behind each: a quote has the same."""
    shown = _labelled(text)
    replies = (_labelled(reply) for at in origin.calls.made for reply in turn.calls[at].replies)
    told = (all(label in one and one[label] != said for label, said in shown.items()) for one in replies)
    return len(shown) > 1 and any(told)


def _cut(prompts: Iterable[str], question: str) -> list[str]:
    found = (guessed_passages(prompt, question, lists=True) for prompt in prompts)
    return [one for blocks in found for one in parts_of_blocks(blocks)]


def _guessed(origin: Origin, texts: Iterable[str]) -> Origin:
    return _with_passages(origin, texts, "guessed", sentence("contexts_guessed"))


def _with_passages(
    origin: Origin, texts: Iterable[str], source: ContextsSource, *notes: str, seen: float | None = None
) -> Origin:
    contexts = tuple(Context(text=text, rank=rank, seen=seen) for rank, text in enumerate(texts))
    kept = (note for note in origin.notes if not note.startswith("no_contexts"))
    return replace(origin, contexts=contexts, contexts_source=source, notes=(*kept, *notes))


def _without_copies(origin: Origin, sources: Sources) -> Origin:
    """What a step made and the prompt does not hold was not retrieved: a copy, a draft, a part."""
    shown = {one.text for one in origin.contexts}
    used = (run for run in sources.before if not shown.isdisjoint(one.text for one in run))
    changed = {one.text for one in sources.reranked} if sources.found else set[str]()
    looked_up = (shown - changed) | {one.text for one in chain(sources.found, *used)}
    retrieved = tuple(one for one in origin.retrieved if one.text in looked_up)
    same = [one.text for one in retrieved] == [one.text for one in origin.contexts]
    return replace(origin, retrieved=() if same or not origin.retrieved else retrieved)
