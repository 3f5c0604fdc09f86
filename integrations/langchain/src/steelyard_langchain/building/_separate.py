"""A model call of plain Python that used what was found before it in the same task or thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.recording.provenance import (
    Asked,
    ModelCall,
    Provenance,
    judge_turn,
)
from steelyard_langchain._turn import Earlier, Model, Tool
from steelyard_langchain.building._extract import last_human, messages_in, role_of
from steelyard_langchain.building._view import View

SEPARATE = "no run holds the search and this call together; `with record(...):` around both does"
"""Note of a turn that was put together out of calls in one task."""


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
