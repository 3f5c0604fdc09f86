"""From the application's template to what its model is sent, in the ways in which people do that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from generator.choices import Choices
from generator.langchain.messages import read
from generator.templates import Template, template_of


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
