"""Many applications at random: drawn, run, judged."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

from generator.choices import Axes, Choices, draw
from generator.verdicts import Judgement, judge


@dataclass
class Bed:
    """Applications of one framework, under its own recorder."""

    framework: str
    heldout: bool = False
    broken: list[str] = field(default_factory=list)
    """Applications that did not run, a line each: defects of the generator."""

    def axes(self) -> Axes:
        if self.framework == "langchain":
            from generator.langchain.axes import axes

            return axes(heldout=self.heldout)
        raise ValueError(self.framework)

    def run(self, choices: Choices) -> Judgement:
        """Run one application and judge its records."""
        from generator.langchain.run import run

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return judge(run(choices))

    def judgements(self, number: int, seed: int) -> Iterator[Judgement]:
        """Run applications by their seeds, one after the other."""
        logging.getLogger("langchain_core").setLevel(logging.CRITICAL)
        axes = self.axes()
        for at in range(number):
            choices = draw("langchain", axes, seed * 1_000_000 + at)
            try:
                yield self.run(choices)
            except Exception as error:  # noqa: BLE001 - told by the caller
                self.broken.append(f"{choices.seed}: {type(error).__name__}: {error} {dict(choices.parts())}")
