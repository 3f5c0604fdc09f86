"""What the user asked: what the root was given says it, or nobody does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from steelyard.recording.building._sent import (
    MOST_LINES,
    asked_last,
    said_before_rewriting,
    said_to_agent,
    standalone_of,
)
from steelyard.recording.building._sources import Sources
from steelyard.recording.building._steps import Steps, is_telling, is_written
from steelyard.recording.building._templates import TEMPLATES
from steelyard.recording.provenance import (
    Note,
    calls_behind,
    find_passages,
    guessed_passages,
    guessed_question,
    has_empty_place,
    holds_passages,
    json_strings,
    labelled_question,
    names_both,
    names_question_within,
    only_speech,
    plain,
    split_chat_template,
    word_count,
    words,
)
from steelyard.recording.reading import (
    asked_in,
    earlier_messages,
    is_question,
    leaves_in,
    messages_in,
    since_last_asked,
    state_of,
    strings_in,
)

_WHOLLY = 0.9
_SIGNS = " \t.?!\"'"
_MOST = 60  # words; a longer text is not one question


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a turn was asked."""

    question: str = field(repr=False)
    """The user's own words; empty where they were not found."""
    standalone: str | None = field(default=None, repr=False)
    """The form that stands without the conversation, where one was made."""
    notes: tuple[Note, ...] = ()
    """What is doubtful of it."""


def asked_of(turn: Steps, sources: Sources, *, told: Any = None) -> Asked:
    """What was asked, out of what the root was given; out of a prompt only if the root was given one.

    What a prompt names may be a model's form of it. The user's is what that model was sent, if the prompt
    holds this, too.

    Args:
        turn: The turn.
        sources: What came into it: a text that was looked up under is what was asked.
        told: The part of the input or the output that the application named, if it named one.
    """
    if told is not None:
        own = asked_in(told)
        return Asked(question=own, standalone=standalone_of(turn, own) if own else None)
    asked = _asked_of(turn, sources)
    said = said_before_rewriting(asked.question, turn) if "question_guessed" in asked.notes else None
    if said is None:
        return _as_typed(asked, turn)
    if not said:
        return replace(asked, notes=(*asked.notes, "question_rewritten_only"))
    return replace(asked, question=said, standalone=asked.question)


def _as_typed(asked: Asked, turn: Steps) -> Asked:
    """What the prompt of an earlier run ends in, if a model replied with the question and nothing else.

    Behind it may stand the label of the reply. On a line of instructions nothing tells the user's words from
    the rest; what others follow is what a model was to go on from: an exchange, a passage.
    """
    form = plain(asked.question)
    wrote = (call for call in reversed(turn.earlier) if form and form == plain(call.reply))
    sent = "\n".join(next((call.prompts for call in wrote), ())).strip()
    typed = guessed_question(sent) if "\n" in sent else ""
    if plain(typed) in ("", form) or not (is_question(typed) or names_question_within(sent)):
        return asked
    behind = sent.rpartition(typed)[2].strip()
    if "\n" in typed or "\n" in behind or behind[-1:] not in ("", ":", "\uff1a"):
        return asked
    return Asked(question=typed, standalone=asked.question, notes=("question_guessed",))


def _asked_of(turn: Steps, sources: Sources) -> Asked:
    own = _own_words(turn) or _only_text(turn) or _queried(turn.given, sources) or _remembered(turn)
    if not own and (own := _only_words(turn, sources)):
        return Asked(question=own, standalone=standalone_of(turn, own), notes=("question_guessed",))
    if not own:
        guessed = "" if turn.given else _guessed(turn)
        return Asked(question=guessed, notes=("question_guessed" if guessed else "question_unknown",))
    # The application took what it looked up out of a request in JSON.
    within = _queried(list(json_strings(own))[1:], sources) if own.startswith("{") else ""
    return _told_by_root(turn, sources, within or own)


def _own_words(turn: Steps) -> str:
    """What the root was asked; of two, what no model wrote in an earlier run."""
    own = asked_in(turn.given)
    if not own or not isinstance(turn.given, Mapping):
        return own
    written = {plain(text) for call in turn.earlier for reply in call.replies for text in json_strings(reply)}
    if plain(own) not in written:
        return own
    return asked_in({name: one for name, one in turn.given.items() if one != own}) or own


def _told_by_root(turn: Steps, sources: Sources, own: str) -> Asked:
    """The question in what the root was given, which may be a prompt that passages were put into."""
    is_prompt = "\n" in own and has_empty_place(own, guessed_question(own))
    if is_prompt or _held(own, _before(sources)):
        cut = _cut_out(turn, sources, own)
        return _as_before(cut, turn) if cut else Asked(question=own, notes=("question_whole_prompt",))
    asked = _beside_template(own, turn)
    asked = replace(asked, standalone=standalone_of(turn, asked.question))
    if turn.retrievals or turn.tools or _is_beside_passages(turn, own):
        return asked
    if not asked.notes and "\n" in own and _looks_filled("\n".join(split_chat_template(own))):
        asked = replace(asked, notes=("question_whole_prompt",))
    return (_cut_out(turn, sources, own) if _is_sent_as_given(own, turn) else None) or asked


def _beside_template(own: str, turn: Steps) -> Asked:
    """What the user typed of an input that other words may stand around, put there by code.

    Parts that other inputs have, too, are code's. The user's words are what these name, or all other parts,
    if they stand together. Who types passages beside a question may type them again.
    """
    # Code wrote down who spoke: before all of it, or in the marks of a template for chats.
    *before, said = split_chat_template(own) or [own]
    if (speech := only_speech(own)) or not own.startswith((*before, said)[0]):
        return Asked(question=speech or said.strip(), notes=("question_guessed",))
    is_named, parts = names_question_within(own), TEMPLATES.in_parts(own)
    if not any(is_known for _, is_known in parts):
        # Code may have written, too, what names its question, or has several lines.
        is_clear = TEMPLATES.tells_typed(own) and not is_named
        return Asked(question=own, notes=() if is_clear else ("question_whole_prompt",))
    text = guessed_question(own) if is_named else _only_run(parts)
    if not text or names_both(own):
        return Asked(question=own, notes=("question_whole_prompt",))
    notes: tuple[Note, ...] = ("question_guessed", "question_whole_prompt")
    return Asked(question=text, notes=notes[: 1 + _has_more(text, parts, turn)])


def _has_more(text: str, parts: Sequence[tuple[str, bool]], turn: Steps) -> bool:
    left = (part for part, is_known in parts if not (is_known or text in part or part.strip() in text))
    return any(is_telling(one) and not (is_question(one) or is_written(one, turn.earlier)) for one in left)


def _only_run(parts: Sequence[tuple[str, bool]]) -> str:
    """The only text between the known parts of an input; code makes others of its words: keywords."""
    between = (run for is_known, run in groupby(parts, lambda one: one[1]) if not is_known)
    runs = ("".join(part for part, _ in run).strip() for run in between)
    rows = {run: set(words(run)) for run in runs if run}
    own = [run for run, row in rows.items() if not row or not any(row < other for other in rows.values())]
    return labelled_question(own[0]) or own[0] if len(own) == 1 else ""


def _as_before(cut: Asked, turn: Steps) -> Asked:
    """The question without what follows it in the template, if the prompt of an earlier run shows its end."""
    lines = cut.question.split("\n")
    heads = ("\n".join(lines[:count]).rstrip() for count in range(len(lines) - 1, 0, -1))
    shown = [text for call in turn.earlier for text in call.prompts]
    # What was looked up is the question as it is, whatever the words that it begins with.
    if not cut.notes or len(lines) > MOST_LINES or any(cut.question in text for text in shown):
        return cut
    first = next((one for one in heads if any(one in text for text in shown)), cut.question)
    return replace(cut, question=first)


def _is_beside_passages(turn: Steps, own: str) -> bool:
    """Whether another message has the passages: the user's is what was typed then, whatever it looks like.

    A list in the other one may be of instructions, if the user's names a question and passages itself.
    """
    is_filled = "\n" in own and names_both(own)
    messages = [one for call in turn.models for one in call.messages]
    return any(one.text.strip() == own.strip() for one in messages) and any(
        one.role == "system" and holds_passages(one.text, lists=not is_filled) for one in messages
    )


def _looks_filled(text: str) -> bool:
    """Whether a text names a question and has what may be passages beside it."""
    asked = guessed_question(text)
    return asked not in ("", text.strip()) and bool(
        guessed_passages(text, asked) or has_empty_place(text, asked)
    )


def _queried(given: Any, sources: Sources) -> str:
    """The text of the input that was looked up under, whatever name it has."""
    queries = {plain(query) for query in (*sources.queries, *sources.queries_before)}
    return next((text for _, text in strings_in(given) if plain(text) in queries), "")


def _only_text(turn: Steps) -> str:
    """The only text of the input, whatever its name, if a model was asked it; rows are passages.

    Of several, the only one that says anything in a user's message beside a system's.
    """
    texts = _typed(turn.given)
    return _only(_said_by_user(texts, turn) if len(texts) > 1 else texts, turn)


def _only_words(turn: Steps, sources: Sources) -> str:
    """The only text of the input that says something, beside names and codes, if a model was asked it.

    Of a run that was given none, of what its first steps brought: a mail that they fetched.
    """
    texts, known = _typed(turn.given) or _fetched(turn), {one.text.strip() for one in sources.documents}
    return _only(
        [text for text in texts if text not in known and (is_telling(text) or is_question(text))], turn
    )


def _fetched(turn: Steps) -> list[str]:
    """The texts that steps returned before a model was asked or anything was looked up.

    Without those that were made of others: prompts.
    """
    began = min((step.at for step in turn.steps if step.kind not in ("chain", "prompt")), default=0)
    first = (step.returned for step in turn.steps if step.kind == "chain" and step.at < began)
    texts = list(dict.fromkeys(text for value in first for text in _typed(value)))
    return [text for text in texts if not any(one in text and one != text for one in texts)]


def _typed(value: Any) -> list[str]:
    said = set(earlier_messages(value))
    every = (one.text.strip() for one in leaves_in(value) if not one.table and one.text not in said)
    return list(dict.fromkeys(filter(None, every)))


def _only(texts: Sequence[str], turn: Steps) -> str:
    if len(texts) != 1 or word_count(texts[0]) > _MOST:
        return ""
    prompts = [text for call in turn.calls for text in call.prompts]
    is_there = any(plain(texts[0]) in plain(text) for text in prompts)
    # An object that it was read into is printed in another way.
    return texts[0] if is_there or find_passages(texts, prompts)[0].seen >= _WHOLLY else ""


def _said_by_user(texts: Sequence[str], turn: Steps) -> list[str]:
    """The texts that say something and stand in what a model was sent last as the user's."""
    sent = [step.messages for step in turn.models if any(one.role == "system" for one in step.messages)]
    asked = [one for messages in sent for one in since_last_asked(messages)[:1] if one.role == "user"]
    last = [plain(one.text) for one in asked]
    able = [text for text in texts if is_telling(text) or is_question(text)]
    return [text for text in able if any(plain(text) in one for one in last)]


def _remembered(turn: Steps) -> str:
    """The question in what the root returned, if it was given none: a conversation that goes on.

    What a model said is not one, even if a node puts it among the messages as the user's.
    """
    state = state_of(turn.returned)
    messages = messages_in(turn.returned)
    if state is None and not any(one.role == "user" for one in messages):
        return ""
    said = {reply.strip() for call in turn.calls for reply in call.replies}
    left = [one for one in messages if one.text.strip() not in said]
    asked = [{"role": one.role, "content": one.text} for one in left]
    found = asked_in({**state, "messages": asked} if state is not None else asked)
    is_only = state is not None and len(state) == 1 and isinstance(next(iter(state.values())), str)
    return "" if found in said or is_only else found


def _guessed(turn: Steps) -> str:
    """The question that the answer's prompt names, or its last message, if the root was given nothing."""
    made = calls_behind(turn.calls, turn.answer).made
    if own := said_to_agent(turn, made):
        return own
    said = asked_last(turn, made)
    named = [*map(guessed_question, reversed(said)), *(text for text in said[1:][-1:] if "\n" not in text)]
    replies = [reply for call in turn.calls for reply in call.replies]
    guessed = next((one for one in named if one and not any(one in reply for reply in replies)), "")
    # What a template was filled in with stands behind its label.
    filled = [step.given for step in turn.steps if step.kind == "prompt"]
    return next((text for _, text in strings_in(filled) if text and guessed.endswith(text)), guessed)


def _cut_out(turn: Steps, sources: Sources, own: str) -> Asked | None:
    """The question within what the root was given, if that is a prompt with its passages in it already."""
    said = "\n".join(split_chat_template(own))
    if query := _looked_up(said, turn, sources):
        return Asked(question=query)
    made = (one.text for one in sources.texts if not one.is_given and one.text.strip() != own.strip())
    if held := _held(said, [*_before(sources), *made]):
        return _beside(said, held, sources)
    found = Asked(question=guessed_question(said), notes=("question_guessed",))
    return found if _looks_filled(said) else None


def _is_sent_as_given(text: str, turn: Steps) -> bool:
    """Whether a model was sent a text of the input, and nothing that the input does not have.

    A template around it, or instructions beside it, would show that it was filled in.
    """
    given = {one.strip() for _, one in strings_in(turn.given)}
    given.update(one.text.strip() for one in messages_in(turn.given))
    sent = ({prompt.strip() for prompt in call.prompts} for call in turn.calls)
    return any(text.strip() in prompts <= given for prompts in sent)


def _looked_up(prompt: str, turn: Steps, sources: Sources) -> str:
    """What was looked up before the turn, if the prompt repeats it and no model wrote it."""
    replies = [plain(reply) for call in turn.earlier for reply in call.replies]
    shown = (query.strip() for query in sources.queries_before if query.strip() in prompt)
    rows = [f": {line}".rstrip(_SIGNS) for line in prompt.split("\n")]
    # A few words stand somewhere by chance, but not as a line or behind its label.
    ends = {q: f": {q.rstrip(_SIGNS)}" for q in shown}
    able = (q for q in ends if is_telling(q) or is_question(q) or any(r.endswith(ends[q]) for r in rows))
    return next((query for query in able if not any(plain(query) in reply for reply in replies)), "")


def _before(sources: Sources) -> list[str]:
    return [one.text for run in sources.before for one in run]


def _held(prompt: str, texts: Sequence[str]) -> list[str]:
    """Which of these, looked up before the turn or made in it, stand in what the root was given."""
    pairs = zip(texts, find_passages(texts, [prompt]), strict=True) if texts else ()
    return [text for text, seen in pairs if seen.found and seen.seen >= _WHOLLY]


def _beside(prompt: str, passages: Sequence[str], sources: Sources) -> Asked | None:
    """The question of a prompt that holds these passages: the query that it repeats, or what it names."""
    rest = prompt
    for text in passages:
        rest = rest.replace(text, "\n...\n")  # an empty place would be another section's
    if (named := guessed_question(rest)).strip(".\n"):
        return Asked(question=named, notes=("question_guessed",))
    queries = [*sources.queries_before, *reversed(sources.queries)]
    return Asked(question=queries[0], notes=("question_rewritten_only",)) if queries else None


def without_template(asked: Asked, turn: Steps, sources: Sources) -> Asked:
    """What a model was sent as the question, without what may be a template's.

    Who sends a model what was looked up in the turn has filled in a template.
    """
    own = asked.question
    held = _held(own, [one.text for one in sources.documents]) if "\n" in own else []
    return (_beside(own, held, sources) if held else None) or _unlabelled(asked, turn)


def _unlabelled(asked: Asked, turn: Steps) -> Asked:
    """The same without a label, or all that stands around it."""
    own = asked.question
    # Who lets a model call tools sends the user's words as they are.
    sent = (one for step in turn.models for one in step.messages)
    has_tools = bool(turn.tools) or any(one.role == "tool" for one in sent)
    named = "" if has_tools else labelled_question(own)
    if not named and "\n" not in own:
        return asked
    if not (named or has_tools or _is_beside_passages(turn, own)) and guessed_passages(own, ""):
        named = guessed_question(own)
    return replace(asked, question=named or own, notes=("question_guessed",))
