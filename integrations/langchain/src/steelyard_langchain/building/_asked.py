"""What the user asked: at the root, in a prompt that the root was given filled in, or in the prompt alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.record import text_of
from steelyard.recording.provenance import (
    Asked,
    ModelCall,
    Provenance,
    context_block,
    find_passages,
    has_history,
    question_in_prompt,
    speeches,
    user_question,
)
from steelyard_langchain._options import Options
from steelyard_langchain._turn import Model, outermost, within
from steelyard_langchain.building._contexts import Found
from steelyard_langchain.building._extract import (
    last_human,
    message_text,
    messages_in,
    question_of,
    role_of,
    state_of,
)
from steelyard_langchain.building._view import View

_FEWEST_WORDS = 2
_LONGEST_QUESTION = 60  # a longer last line is a text that ends with a question, not the question


def asked_at_root(view: View, options: Options, replies: set[str]) -> Asked:
    """What the root was given, or one of the interrupted turns before it."""
    key, query = options.question_key, _rewritten(view)
    asked = question_of(view.inputs, view.outputs, key, replies=replies, query=query)
    for turn in view.history:
        if not asked.question:
            asked = question_of(turn.inputs, turn.outputs, key, replies=replies, query=query)
    return asked


def asked_in_filled_prompt(view: View, asked: Asked, found: Found) -> Asked:
    """The question within what the root was given, where that is a prompt with its passages in it already.

    A run that searches was given a question, whatever else stands in it.
    """
    if view.retrievals or view.tools or not asked.question:
        return asked
    said = "\n".join(speeches(asked.question))
    texts = [context.text for group in found.nearby for context in group]
    if _holds_any(texts, said):
        return _asked_around(texts, said, _queries(view))
    named = question_in_prompt(said) if context_block(said) else ""
    return Asked(question=named) if named else asked


def asked_in_prompts(view: View, asked: Asked, calls: Sequence[ModelCall], origin: Provenance) -> Asked:
    """Where the root does not say it, the question that the prompt of the answer tells, as a template has it.

    Only where the prompt names it, or the user's last message is a question and nothing else; and not where a
    model wrote it.
    """
    if asked.question or "question" in (view.turn.given or ()) or origin.contexts_source != "in_prompt":
        return asked
    for at in reversed(origin.calls.made):
        told = next(filter(None, _named_by(view.models[at], calls[at])), "")
        if told and not any(told in reply for call in calls for reply in call.replies):
            return Asked(question=told)
    return asked


def _named_by(model: Model, call: ModelCall) -> Iterator[str]:
    for text in reversed(call.prompts):
        yield question_in_prompt("\n".join(speeches(text)))
    for batch in model.prompt or ():
        messages = messages_in(batch)
        spoken = message_text(messages[last_human(messages)]).strip() if messages else ""
        if spoken.endswith("?") and "\n" not in spoken and len(spoken.split()) <= _LONGEST_QUESTION:
            yield spoken


def asked_in_call(view: View, origin: Provenance) -> Asked:
    """What the user asked: their last message, the question that a filled-in prompt names, or the query."""
    messages = messages_in(view.inputs)
    spoken = message_text(messages[last_human(messages)]) if messages else ""
    said = "\n".join(speeches(spoken))
    texts = [context.text for context in origin.contexts]
    if not _holds_any(texts, said):
        return user_question([{"role": "user", "content": said}], in_conversation=False)
    return _asked_around(texts, said, _queries(view))


def _asked_beside(rest: str, queries: Sequence[str]) -> Asked:
    """The question that a prompt asks beside its passages: the latest query that it repeats, or its end."""
    if shown := next((found for query in reversed(queries) if (found := _line_of(query, rest))), ""):
        return Asked(question=shown)
    last = next((line.strip() for line in reversed(rest.split("\n")) if line.strip()), "")
    if last.endswith("?") and len(last.split()) <= _LONGEST_QUESTION:
        return Asked(question=last)
    return Asked(question=queries[-1] if queries else "", notes=("question_rewritten_only",))


def _line_of(query: str, prompt: str) -> str:
    """The query where a prompt repeats it, with the rest of its line where that is one question."""
    if len(query.split()) < _FEWEST_WORDS:
        return ""
    line = next((line.strip() for line in prompt.split("\n") if query in line), "")
    is_question = line.endswith("?") and len(line.split()) <= _LONGEST_QUESTION
    return line if is_question else query if line else ""


def _holds_any(passages: Sequence[str], text: str) -> bool:
    return any(sighting.found for sighting in find_passages(passages, [text]))


def _queries(view: View) -> list[str]:
    """What retrievers before it were asked."""
    return [str(run.query) for one in view.nearby for run in one.retrievals.values()]


def _asked_around(passages: Sequence[str], prompt: str, queries: Sequence[str]) -> Asked:
    """The question of a prompt that holds these passages: one that it names, or what it says besides."""
    if named := question_in_prompt(prompt):
        return Asked(question=named)
    for text in passages:
        prompt = prompt.replace(text, "\n")
    return _asked_beside(prompt, queries)


def _rewritten(view: View) -> str | None:
    """The question as a model rewrote it for the retriever, in a conversation.

    Only there: without a history a query is just a query (keywords, a sub-question, an invented answer), and
    what the user asked stands by itself.
    """
    turn = view.turn
    first = next((r for r in view.retrievals if outermost(turn, r.key)), None)
    if first is None or not isinstance(first.query, str):
        return None
    if any(within(turn, first.key, tool) for tool in turn.tools):
        return None
    rewriters = [model for model in view.models if model.started < first.started]
    return text_of(first.query) if rewriters and in_conversation(view, rewriters) else None


def in_conversation(view: View, rewriters: list[Model]) -> bool:
    """Whether there was an earlier exchange, by the input or by what these calls were sent."""
    if has_history(state_of(view.inputs)):
        return True
    if sum(role_of(message) == "human" for message in messages_in(view.inputs)) > 1:
        return True
    return any(
        role_of(message) == "ai"
        for model in rewriters
        for batch in model.prompt
        if isinstance(batch, (list, tuple))
        for message in batch
    )
