"""The application of a set of choices."""

from __future__ import annotations

from collections.abc import Callable

from generator.choices import Choices
from generator.langchain.agents import agent
from generator.langchain.application import Application, single
from generator.langchain.chains import Input, chain, function, mapped, scored, tutorial
from generator.langchain.graphs import graph
from generator.langchain.separate import bare, classic, conversation, parts, separate

SHAPES: dict[str, Callable[[Choices], Application]] = {
    "chain": lambda choices: single(chain(choices), Input(choices).given),
    "tutorial": lambda choices: single(tutorial(choices), Input(choices).given),
    "function": lambda choices: single(function(choices), Input(choices).given),
    "mapped": lambda choices: single(mapped(choices), Input(choices).given),
    "graph": graph,
    "agent": agent,
    "separate": separate,
    "parts": parts,
    "bare": bare,
    "classic": classic,
    "conversation": conversation,
}

SCORED = ("chain", "tutorial", "function", "mapped")
"""Shapes after which a chain may say what the answer is worth."""


def build(choices: Choices) -> Application:
    """An application, ready to run."""
    made = SHAPES[choices["shape"]](choices)
    return scored(made) if choices["shape"] in SCORED and choices["scoring"] == "yes" else made
