"""Runs an application of LlamaIndex under a recorder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from generator.choices import Choices
from generator.conversing import run_conversations
from generator.llamaindex.build import build
from generator.receiving import Receiver, Run
from generator.spans import Spans
from steelyard_llamaindex import instrument, uninstrument


def run(choices: Choices, spans: Spans | None = None) -> Run:
    """Build an application, run all its turns, and give back what was recorded."""
    recorder = spans.recording if spans else _instrumented
    return run_conversations(build(choices), choices, recorder, spans)


@contextmanager
def _instrumented(receiver: Receiver) -> Iterator[None]:
    instrument(receiver)
    try:
        yield
    finally:
        uninstrument()
