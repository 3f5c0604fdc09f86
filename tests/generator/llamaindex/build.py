"""The application of a set of choices."""

from __future__ import annotations

from collections.abc import Callable

from generator.choices import Choices
from generator.conversing import Application
from generator.llamaindex.applications import (
    agent,
    chat,
    citation,
    custom,
    query_engine,
    router,
    separate,
)
from generator.llamaindex.loops import registry
from generator.llamaindex.nested import imagined, reasoning, researched, sub_questions

SHAPES: dict[str, Callable[[Choices], Application]] = {
    "engine": query_engine,
    "chat": chat,
    "agent": agent,
    "workflow": researched,
    "citation": citation,
    "router": router,
    "custom": custom,
    "separate": separate,
    "sub_questions": sub_questions,
    "imagined": imagined,
    "reasoning": reasoning,
    "registry": registry,
}


def build(choices: Choices) -> Application:
    """An application, ready to run."""
    return SHAPES[choices["shape"]](choices)
