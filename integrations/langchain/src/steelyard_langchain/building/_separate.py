"""A model call of plain Python that used what was found before it in the same task or thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.recording.provenance import (
    Asked,
    ModelCall,
    Provenance,
    find_passages,
    judge_turn,
    question_in_prompt,
    speeches,
    user_question,
)
from steelyard_langchain._turn import Earlier, Model, Tool
from steelyard_langchain.building._extract import last_human, message_text, messages_in, role_of
from steelyard_langchain.building._view import View

SEPARATE = "no run holds the search and this call together; `with record(...):` around both does"
"""Note of a turn that was put together out of calls in one task."""

_FEWEST_WORDS = 2
_LONGEST_QUESTION = 60  # a longer last line is a text that ends with a question, not the question


def since_the_question(model: Model) -> Model:
    """The call with what this turn is about: instructions, the user's last words, and what follows them.

    What was said and looked up before belongs to earlier turns.
    """
    latest = Model(model.key, [_latest(part) for part in model.prompt or ()])
    latest.reply, latest.started = model.reply, model.started
    return latest


def _latest(part: Any) -> Any:
    if not isinstance(part, (list, tuple)):
        return part
    since = last_human(part)
    return [one for at, one in enumerate(part) if at >= since or role_of(one) == "system"]


def is_answer(view: View, call: ModelCall, origin: Provenance, asked: Asked) -> bool:
    """Whether a call answered out of what was found before it, rather than grading or rewriting it.

    Where nothing ran before it, the prompt alone has to show both passages and a question.
    """
    used = origin.contexts_source == "in_prompt" and bool(origin.contexts)
    if not view.nearby:
        used = used and bool(asked.question)
    if not used and not reads_tools(view):
        return False
    return judge_turn([call], answer=call.reply).is_turn


def reads_tools(view: View) -> bool:
    """Whether tools that ran before it stand in its prompt, after the user's last words."""
    messages = messages_in(view.inputs)
    told = any(role_of(one) == "tool" for one in messages[last_human(messages) + 1 :])
    return told and any(earlier.tools for earlier in view.nearby)


def told_by_messages(view: View) -> Earlier | None:
    """What functions returned that plain code called for the model, out of the messages that tell it."""
    messages = messages_in(view.inputs)
    latest = messages[last_human(messages) + 1 :]
    wanted = [call for message in latest for call in getattr(message, "tool_calls", None) or ()]
    names = {call.get("id"): call for call in wanted if isinstance(call, Mapping)}
    tools: dict[int, Tool] = {}
    for number, message in enumerate(latest):
        if role_of(message) == "tool":
            call = names.get(getattr(message, "tool_call_id", None), {})
            name = getattr(message, "name", None) or call.get("name")
            tools[number] = tool = Tool(number, name, call.get("args"))
            tool.output = message
    return Earlier({}, {}, tools) if tools else None


def asked_in_call(view: View, origin: Provenance) -> Asked:
    """What the user asked: their last message, the question that a filled-in prompt names, or the query."""
    messages = messages_in(view.inputs)
    spoken = message_text(messages[last_human(messages)]) if messages else ""
    said = "\n".join(speeches(spoken))
    texts = [context.text for context in origin.contexts]
    if not any(sighting.found for sighting in find_passages(texts, [said])):
        return user_question([{"role": "user", "content": said}], in_conversation=False)
    if named := question_in_prompt(said):
        return Asked(question=named)
    for text in texts:
        said = said.replace(text, "\n")
    return _asked_beside(said, [str(r.query) for one in view.nearby for r in one.retrievals.values()])


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
