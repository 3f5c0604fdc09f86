"""Many applications at random: drawn, run, judged."""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from generator.choices import Axes, Choices, Framework, draw
from generator.spans import INSTRUMENTORS, Spans
from generator.verdicts import Judgement, judge
from steelyard.recording.building._templates import TEMPLATES, PromptTemplates

_OWN = ("langchain", "llamaindex")
WRITTEN = "spans:written"
NAMES = (*_OWN, *(f"spans:{dialect}:{framework}" for dialect, framework in INSTRUMENTORS), WRITTEN)
"""What applications can be run under: a framework's own recorder, or spans as a dialect writes them."""

_UNTOLD: Axes = {"researching": ("itself",)}
"""What is left of axes under spans: no span tells the question of a workflow whose agent finds things out."""

_LOUD = ("langchain_core", "steelyard", "opentelemetry", "openinference")
"""Loggers that would tell of each application that is made to fail."""


class Bed:
    """Applications of one framework under one recorder. Instrumentors stay: a process has one bed of spans.

    Args:
        name: `langchain`, `llamaindex`, or `spans:<dialect>:<framework>` or `spans:written`.
        heldout: Whether prompts are made of the half of the corpus that is kept for evaluation.
    """

    def __init__(self, name: str, *, heldout: bool = False) -> None:
        *dialect, framework = name.removeprefix("spans:").split(":")
        self.framework = cast(Framework, framework)
        self.module: Any = importlib.import_module(f"generator.{framework}")
        self.axes: Axes = self.module.axes(heldout=heldout)
        self.spans = Spans("".join(dialect), framework) if name not in _OWN else None
        if self.spans:
            self.axes = {axis: _UNTOLD.get(axis, options) for axis, options in self.axes.items()}
        self.broken: list[str] = []
        """Applications that did not run, a line each: defects of the generator."""

    def run(self, choices: Choices) -> Judgement:
        """Run one application and judge its records."""
        with warnings.catch_warnings(), _process(choices):
            warnings.simplefilter("ignore")
            return judge(self.module.run(choices, self.spans))

    def judgements(self, number: int, seed: int) -> Iterator[Judgement]:
        """Run applications by their seeds, one after the other."""
        loggers = [logging.getLogger(name) for name in _LOUD]
        levels = [logger.level for logger in loggers]
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            for at in range(number):
                choices = draw(self.framework, self.axes, seed * 1_000_000 + at)
                try:
                    yield self.run(choices)
                except Exception as error:  # noqa: BLE001 - told by the caller
                    cause = f"{type(error).__name__}: {error}"
                    self.broken.append(f"{choices.seed}: {cause} {dict(choices.parts())}")
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


@contextmanager
def _process(choices: Choices) -> Iterator[None]:
    """A process of an application's own, that learnt nothing of the others, if it is to have one."""
    learnt = vars(TEMPLATES).copy()
    if "process" in choices.options and choices["process"] == "new":
        vars(TEMPLATES).update(vars(PromptTemplates()))
    try:
        yield
    finally:
        vars(TEMPLATES).update(learnt)
