"""Runs an application of LlamaIndex under a recorder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from generator.choices import Choices
from generator.conversing import Answer, Application, run_conversations
from generator.llamaindex.build import build
from generator.llamaindex.models import Completes
from generator.llamaindex.parts import wrapped
from generator.receiving import Receiver, Run
from generator.spans import Spans
from generator.turns import Turn
from steelyard_llamaindex import instrument, uninstrument

_ROUTE = (
    "You sort what customers ask.\n\nContext:\n1. RULES: deadlines, fees, forms and what is allowed.\n"
    "2. PEOPLE: who is who, and who does what.\n\nQuestion: {question}\n\nClassification:"
)


def run(choices: Choices, spans: Spans | None = None) -> Run:
    """Build an application, run all its turns, and give back what was recorded."""
    if spans is not None:
        return run_conversations(build(choices), choices, spans.recording, spans)
    made = build(choices)
    # Calls that plain code puts together are a turn of their own.
    if choices["shape"] != "separate" and choices["before"] == "routed":
        made = _routed(made, choices)
    return run_conversations(made, choices, _instrumented, None)


def _routed(made: Application, choices: Choices) -> Application:
    """The same, with a model that is asked where each question goes before the application is asked it."""

    def begin() -> Answer:
        inner = made.answer()

        async def answer(turn: Turn) -> str:
            asked = wrapped(choices, turn) if choices["shape"] in ("engine", "agent") else turn.question
            Completes(role="route").complete(_ROUTE.format(question=asked))
            return await inner(turn)

        return answer

    return replace(made, answer=begin)


@contextmanager
def _instrumented(receiver: Receiver) -> Iterator[None]:
    instrument(receiver)
    try:
        yield
    finally:
        uninstrument()
