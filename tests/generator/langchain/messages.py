"""Histories, questions and templates as what a model is sent, in every form that LangChain takes them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from generator.choices import Choices
from generator.templates import Template, template_of
from generator.turns import Turn

FORMS = ("objects", "tuples", "dicts", "roles", "typed", "parts")


def spoken(turn: Turn) -> list[BaseMessage]:
    """The conversation before a turn."""
    return [m for asked, said in turn.history for m in (HumanMessage(asked), AIMessage(said))]


def formed(messages: Sequence[BaseMessage], form: str) -> list[Any]:
    """Messages in a form."""
    if form == "tuples":
        return [({"human": "user", "ai": "assistant"}[each.type], each.text) for each in messages]
    if form == "roles":
        return [(each.type, each.text) for each in messages]
    if form == "dicts":
        roles = {"human": "user", "ai": "assistant"}
        return [{"role": roles[each.type], "content": each.text} for each in messages]
    if form == "typed":
        return messages_to_dict(messages)
    if form == "parts":
        return [type(each)(content=[{"type": "text", "text": each.text}]) for each in messages]
    return list(messages)


def read(messages: Sequence[Any]) -> list[Any]:
    """Messages of any form, as a prompt takes them; what `messages_to_dict` made it takes not."""
    if messages and isinstance(messages[0], dict) and "data" in messages[0]:
        return messages_from_dict(list(messages))
    return list(messages)


def asked_at(messages: Sequence[Any]) -> int:
    """The place of the user's last message."""
    return max(at for at, message in enumerate(read(messages)) if _role(message) in ("human", "user"))


def _role(message: Any) -> str:
    if isinstance(message, tuple):
        return str(message[0])
    return str(message["role"]) if isinstance(message, dict) else str(message.type)


def last_text(messages: Sequence[Any]) -> str:
    """The text of the user's last message."""
    last = read(messages)[asked_at(messages)]
    if isinstance(last, tuple):
        return str(last[1])
    return str(last["content"]) if isinstance(last, dict) else str(last.text)


def written(turn: Turn, *, asks: bool = False) -> str:
    """The conversation as one text, perhaps with what is asked now as its last line."""
    past = [f"Human: {asked}\nAI: {said}" for asked, said in turn.history]
    return "\n".join([*past, *[f"Human: {turn.question}"] * asks])


def template(choices: Choices) -> Template:
    """The template of an application."""
    return template_of(choices)


def prompted(choices: Choices, *, history: bool) -> Runnable[Any, Any]:
    """What makes a prompt of `context`, `question` and `history`."""
    made, way = template(choices), choices["prompting"]
    if way == "string":
        return PromptTemplate.from_template(made.text())
    if way == "fstring":
        return RunnableLambda(lambda given: made.text().format(**given))
    placeholder = history and not made.takes_history
    if way == "messages":
        return RunnableLambda(lambda given: _messages(made, given, placeholder))
    chat = _chat(made, placeholder)
    return chat if way == "chat" else RunnableLambda(lambda given: chat.invoke(given))


def _chat(made: Template, placeholder: bool) -> ChatPromptTemplate:
    *system, human = made.messages()
    middle: list[Any] = [MessagesPlaceholder("chat_history", optional=True)] if placeholder else []
    return ChatPromptTemplate.from_messages([*system, *middle, human])


def _messages(made: Template, given: Mapping[str, Any], placeholder: bool) -> list[Any]:
    kinds: dict[str, Callable[[str], Any]] = {"system": SystemMessage, "human": HumanMessage}
    filled = [kinds[role](text.format(**given)) for role, text in made.messages()]
    return [*filled[:-1], *(read(given.get("chat_history") or []) if placeholder else []), filled[-1]]
